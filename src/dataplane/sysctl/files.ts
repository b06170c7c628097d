/** The files that kernel settings are. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Small files, read and written at once: the kernel answers from memory. */
export interface Files {
  /** The text of a file; undefined when there is none. Throws when it may not be read. */
  read(path: string): string | undefined;
  /** Writes to a file that exists. Throws with the message of the kernel when it refuses. */
  write(path: string, text: string): void;
}

/** The files below a folder, which is /proc/sys or what is mounted for it. */
export const filesBelow = (root: string): Files => ({
  read: (path) => {
    try {
      return readFileSync(join(root, path), 'utf8');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  },
  // r+: a setting that does not exist must not become a file.
  write: (path, text) => writeFileSync(join(root, path), text, { flag: 'r+' }),
});
