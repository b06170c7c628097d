/**
 * Footprint keeps the memory of the agent small: when a node has been quiet for a while after work, what only the work needed
 * is given back. Without it an agent keeps for ever what its start took (measured in bench/README.md): garbage of 5,000
 * policies that V8 sees no need to collect, freed memory that the C library keeps, and pages of the program that were read
 * once. It waits for quiet because the main thread stands still meanwhile; threads of heartbeats and mirrors do not.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Libc } from '../dataplane/libc.ts';
import type { Clock } from '../runtime/process/clock.ts';

/** The memory of a process. */
export interface ProcessMemory {
  /** What it has of its own: all but pages of files, which processes share and which come back when they are used. */
  ownBytes(): number;
  /** Collects garbage, and gives the room that it took back. Takes the main thread some hundred milliseconds. */
  collect(): void;
  /** Lets go of the pages of programs and libraries. Those in use come back by themselves. */
  dropPages(): void;
}

export interface FootprintDeps {
  readonly clock: Clock;
  readonly memory: ProcessMemory;
}

/** How long nothing was done before something is given back. */
const quietMs = 3_000;
/**
 * When pages are let go again, each time after the last: a collection, what is compiled anew after it, and what is done for the
 * first time after that need many that nothing else does.
 */
const settledMs = [2_000, 20_000] as const;
/** Giving back is worth its time only for more than this, of memory of its own. */
const worthBytes = 12e6;

export class Footprint {
  readonly #deps: FootprintDeps;
  /** What was left when something was given back last. */
  #leftBytes = 0;
  #isClosed = false;
  #cancelRelief = (): void => {};
  #cancelDrop = (): void => {};

  constructor(deps: FootprintDeps) {
    this.#deps = deps;
  }

  /** Says that work was done. Call it as often as it is. */
  worked(): void {
    if (this.#isClosed) return;
    this.#cancelRelief();
    this.#cancelRelief = this.#deps.clock.after(quietMs, () => this.#relieve());
  }

  /** Ends it: nothing is given back any more. May be called twice. */
  close(): void {
    this.#isClosed = true;
    this.#cancelRelief();
    this.#cancelDrop();
  }

  #relieve(): void {
    const { memory } = this.#deps;
    if (memory.ownBytes() < this.#leftBytes + worthBytes) return;
    memory.collect();
    this.#leftBytes = memory.ownBytes();
    this.#drop(settledMs);
  }

  /** Lets go of pages, and again after each of these times, also when there is a little work in between: it takes some milliseconds. */
  #drop([waitMs, ...later]: readonly number[]): void {
    const { clock, memory } = this.#deps;
    this.#cancelDrop();
    memory.dropPages();
    if (waitMs !== undefined) this.#cancelDrop = clock.after(waitMs, () => this.#drop(later));
  }
}

/** The memory of this process. `read` returns the text of a file of /proc/self. */
export const ownMemory = (libc: Libc, read: (file: 'smaps' | 'status') => string): ProcessMemory => {
  // The flag makes contexts that are made from now on have the function; ours has none.
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => void = runInNewContext('gc');
  return {
    ownBytes: () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(read('status'))?.[1]) * 1024,
    collect: () => {
      // With everything that can be made anew, and so that whole pages become free: an ordinary one gives back 6 MB less.
      collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
      libc.mallocTrim?.(0);
    },
    dropPages: () => {
      for (const { address, length } of programPages(read('smaps'))) libc.madvise(address, length, MADV_DONTNEED);
    },
  };
};

/** From madvise(2): pages of a file are read again when they are used, from the memory of the kernel as long as it has them. */
const MADV_DONTNEED = 4;

/** A part of the memory of a process. */
export interface Range {
  readonly address: number;
  readonly length: number;
}

/**
 * Where programs and libraries are that nobody can write to, in a text of /proc/PID/smaps (proc_pid_smaps(5)). A page that
 * was changed, as the loader does, is no longer the one of the file and would be lost: parts with such pages are left out.
 */
export const programPages = (smaps: string): Range[] =>
  smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/).flatMap((part) => {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +\//.exec(part) ?? [];
    if (from === undefined || to === undefined || !/^Anonymous: +0 kB$/m.test(part)) return [];
    const address = Number.parseInt(from, 16);
    return [{ address, length: Number.parseInt(to, 16) - address }];
  });
