/**
 * A small file in the state folder: what must survive a restart of the agent, but not of the machine. It is written whole
 * and renamed into place, so a reader finds the old text or the new one.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A text that is kept. */
export interface StateFile {
  /** The text; undefined when nothing was written. */
  read(): Promise<string | undefined>;
  /** Replaces the text. */
  write(text: string): Promise<void>;
  /** Forgets the text. May be called twice. */
  remove(): Promise<void>;
}

/** A file by its path; the folder is made when it is first written. */
export const stateFile = (path: string): StateFile => ({
  read: async () => {
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  },
  write: async (text) => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  },
  remove: () => rm(path, { force: true }),
});

/** A text that lives as long as the value. */
export const memoryStateFile = (): StateFile => {
  let kept: string | undefined;
  return {
    read: async () => kept,
    write: async (text) => {
      kept = text;
    },
    remove: async () => {
      kept = undefined;
    },
  };
};
