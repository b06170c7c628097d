/** What is seen of nginx after it was told to read its configuration again. It says nothing itself, so it is watched. */
import { readFile } from 'node:fs/promises';
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { Master } from './program.ts';
import { errorLog } from './render.ts';
import { readSockets, socketsOf } from './sockets.ts';

/** What became of a reload. */
export type Reloaded =
  | { readonly kind: 'live' }
  /** Ports that could not be had, with the kernel's words; the generation before serves on. */
  | { readonly kind: 'ports'; readonly ports: ReadonlyMap<number, string> }
  | { readonly kind: 'failed'; readonly sentence: string };

/** nginx itself tries for two and a half seconds to get a port. */
const LIMIT_MS = 15_000;
const EVERY_MS = 10;

/** How much of the error log there is, so that only what comes after is judged. */
export const errorLogLength = async (folder: string): Promise<number> => (await readErrors(folder)).length;

/**
 * Tells the master to reload and watches until the generation is live: it answers, no older worker takes connections any
 * more, and every port is listened on by this master.
 */
export async function reload(
  master: Master,
  folder: string,
  wanted: { readonly generation: string; readonly ports: readonly number[] },
  clock: Clock,
): Promise<Reloaded> {
  const before = await errorLogLength(folder);
  const { serving: older } = await master.workers();
  master.signal('SIGHUP');
  const endsAtMs = clock.monotonicMs() + LIMIT_MS;
  for (;;) {
    if (!master.isAlive) return { kind: 'failed', sentence: 'nginx ended during the reload' };
    if ((await master.generation()) === wanted.generation) {
      const { serving } = await master.workers();
      const isAlone = !serving.some((pid) => older.includes(pid));
      if (isAlone && missingPorts(master.pid, wanted.ports).length === 0) return { kind: 'live' };
    }
    const refused = judgeErrors((await readErrors(folder)).slice(before));
    if (refused !== undefined) return refused;
    if (clock.monotonicMs() > endsAtMs) {
      const missing = missingPorts(master.pid, wanted.ports);
      const what = missing.length === 0 ? 'does not answer' : `does not listen on ${missing.join(', ')}`;
      return { kind: 'failed', sentence: `the new configuration ${what} after ${LIMIT_MS / 1000} s` };
    }
    await wait(clock, EVERY_MS);
  }
}

/** Ports of the list on which the process does not listen. */
export const missingPorts = (pid: number, ports: readonly number[]): number[] => {
  const own = socketsOf(pid);
  const listening = listeners(pid, (inode) => own.has(inode));
  return ports.filter((port) => !listening.has(port));
};

/** Ports of the list on which some other process listens. */
export const foreignPorts = (pid: number, ports: readonly number[]): number[] => {
  const own = socketsOf(pid);
  const foreign = listeners(pid, (inode) => !own.has(inode));
  return ports.filter((port) => foreign.has(port));
};

/** Ports with a listening socket that fits. */
const listeners = (pid: number, fits: (inode: string) => boolean): ReadonlySet<number> =>
  new Set(
    readSockets(pid)
      .filter(({ state, inode }) => state === 'listen' && fits(inode))
      .map(({ localPort }) => localPort),
  );

const BIND = /\[emerg\] \d+#\d+: bind\(\) to (?:\S*:)?(\d+) failed \(\d+: ([^)]*)\)/g;

/** What the error log says about a reload that was refused; undefined while nothing is decided. Pure. */
export const judgeErrors = (text: string): Reloaded | undefined => {
  const ports = new Map([...text.matchAll(BIND)].map(([, port, words = '']) => [Number(port), words]));
  if (text.includes('still could not bind()') || [...ports.values()].some((words) => words !== IN_USE)) {
    return { kind: 'ports', ports };
  }
  const other = text.split('\n').find((line) => line.includes('[emerg]') && !line.includes('bind()'));
  return other === undefined ? undefined : { kind: 'failed', sentence: other.replace(/^.*\[emerg\] \d+#\d+: /, '') };
};

/** nginx tries again after this one, and ends at once after any other. */
const IN_USE = 'Address already in use';

/** The last line of the error log, without its date; undefined when there is none. */
export const lastError = async (folder: string): Promise<string | undefined> =>
  (await readErrors(folder))
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^\S+ \S+ /, '') || undefined;

const readErrors = (folder: string): Promise<string> => readFile(errorLog(folder), 'latin1').catch(() => '');
