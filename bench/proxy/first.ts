/**
 * Who comes first on a machine that does other things too. A program with a session of its own has a share of the processor of its own
 * (autogroup, sched(7)), and its nice value counts within that share only; the share has a nice value beside it. Our engine gives
 * nginx a session, so the bare one must have one too, and both shares the same weight: else the scheduler is measured.
 * In a pod it makes no difference, because control groups replace these shares.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

const NICE = -10;

/** Puts this program, and all that it starts in its session, before others. The share may be a terminal's and is given back at the end. */
export const comeFirst = (): void => {
  setPriority(NICE);
  const before = raiseShare('self');
  process.on('exit', () => setShare('self', before));
};

/** Puts the share of a program that leads its session before others; tells the nice value that it had. */
export const raiseShare = (pid: number | 'self'): number => {
  const before = existsSync(fileOf(pid)) ? /nice (-?\d+)/.exec(readFileSync(fileOf(pid), 'utf8'))?.[1] : undefined;
  setShare(pid, NICE);
  return Number(before ?? 0);
};

const setShare = (pid: number | 'self', nice: number): void => {
  // Not there in kernels without such shares.
  if (existsSync(fileOf(pid))) writeFileSync(fileOf(pid), String(nice));
};

const fileOf = (pid: number | 'self'): string => `/proc/${pid}/autogroup`;
