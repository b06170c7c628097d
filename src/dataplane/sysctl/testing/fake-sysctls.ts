/** Sysctls over settings that are kept in memory: the code of the real one, on a machine that is not there. */
import { memoryStateFile, type StateFile } from '../../state-file.ts';
import type { Files } from '../files.ts';
import { createSysctls, type Sysctls } from '../sysctls.ts';

export interface FakeSysctls extends Sysctls {
  /** The settings, as anybody may change them. */
  readonly settings: Map<string, string>;
  /** Paths that refuse to be written. */
  readonly locked: Set<string>;
}

export interface FakeSysctlOptions {
  /** The settings that there are; by default there is every one, at 0. */
  readonly settings?: Map<string, string>;
  readonly memory?: StateFile;
}

/** A machine with settings that are numbers, as all of ours are. */
export const createFakeSysctls = ({
  settings: given,
  memory = memoryStateFile(),
}: FakeSysctlOptions = {}): FakeSysctls => {
  const settings = given ?? new Map<string, string>();
  const locked = new Set<string>();
  const files: Files = {
    read: (path) => settings.get(path) ?? (given === undefined ? '0' : undefined),
    write: (path, text) => {
      if (locked.has(path)) throw new Error('EROFS: read-only file system');
      if (!/^\d+$/.test(text)) throw new Error('EINVAL: invalid argument');
      settings.set(path, text);
    },
  };
  return { ...createSysctls({ files, memory }), settings, locked };
};
