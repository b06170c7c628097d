import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { LabFailure } from './failure.ts';
import { until } from './wait.ts';

/** One process for good: a pid alone may be used again, pid and start time together are not. */
export interface ProcessId {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot (man 5 proc). */
  readonly startTicks: string;
}

/** What the walk over /proc needs to know of a process. */
interface Seen extends ProcessId {
  readonly parent: number;
  readonly netns: string;
  readonly marks: ReadonlySet<string>;
}

/** Every process of a lab carries this variable, so that it is found even when all records of the lab are lost. */
export const labMark = 'SALLYPORT_LAB';
/** Processes of a node carry this one too. */
export const nodeMark = 'SALLYPORT_LAB_NODE';

export interface Daemon {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly cwd?: string;
}

/** Starts a program that outlives this one: session of its own, output to its log file. Returns when it runs. */
export function startDaemon(daemon: Daemon): ProcessId {
  const [program = '', ...args] = daemon.argv;
  const log = openSync(daemon.logFile, 'a');
  try {
    const child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', log, log],
      cwd: daemon.cwd ?? '/',
      env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin', HOME: homedir(), ...daemon.env },
    });
    child.unref();
    const started = child.pid === undefined ? undefined : identify(child.pid);
    if (started === undefined) throw new LabFailure(`cannot start ${program}`);
    return started;
  } finally {
    closeSync(log);
  }
}

/** The identity of a running process; undefined if there is none with that pid. */
export function identify(pid: number): ProcessId | undefined {
  const stat = statOf(pid);
  return stat === undefined || stat.isDead ? undefined : { pid, startTicks: stat.startTicks };
}

/** Whether this very process (not another one with its pid) still runs. */
export function isRunning(id: ProcessId): boolean {
  return identify(id.pid)?.startTicks === id.startTicks;
}

/** Sends a signal to this very process; does nothing if it is gone. */
export function signal(id: ProcessId, name: NodeJS.Signals): void {
  if (!isRunning(id)) return;
  try {
    process.kill(id.pid, name);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Ends processes: SIGTERM (also to stopped ones), then SIGKILL to those that are left after `graceMs`. */
export async function end(ids: readonly ProcessId[], graceMs: number): Promise<void> {
  if (graceMs > 0) {
    for (const id of ids) signal(id, 'SIGTERM');
    const gone = () => ids.every((id) => !isRunning(id));
    await until({ what: 'processes to end', limitMs: graceMs, everyMs: 20 }, gone).catch(() => {});
  }
  for (const id of ids) signal(id, 'SIGKILL');
  await until({ what: 'killed processes to go', limitMs: 30_000, everyMs: 10 }, () =>
    ids.every((id) => !isRunning(id)),
  );
}

/**
 * All processes that belong to a lab (or to one node of it): those that carry its mark, their descendants, and all
 * that live in a network namespace found that way; repeated until nothing new appears. The machine's own namespace
 * and this process with its ancestors are never part of it. Nor is who carries the mark of another lab, or descends from
 * such a one: the kernel gives the number of a namespace that is gone to the next one, in the middle of our walk too.
 */
export function membersOf(marks: readonly string[], namespaces: ReadonlySet<string>): ProcessId[] {
  if (marks.length === 0) throw new Error('membersOf without a mark would find every process of the machine');
  const own = ownLine();
  const all = readAll().filter((seen) => !own.has(seen.pid));
  const machineNamespace = namespaceOf('self');
  const foreign = foreignIn(all, marks);
  const members = new Map<number, Seen>();
  const netnsSet = new Set(namespaces);
  netnsSet.delete(machineNamespace ?? '');
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const seen of all) {
      if (foreign.has(seen.pid)) continue;
      const isMember =
        marks.every((mark) => seen.marks.has(mark)) || members.has(seen.parent) || netnsSet.has(seen.netns);
      if (!isMember) continue;
      members.set(seen.pid, seen);
      if (seen.netns !== machineNamespace && isStillIn(seen)) netnsSet.add(seen.netns);
    }
  }
  return [...members.values()].map(({ pid, startTicks }) => ({ pid, startTicks }));
}

/**
 * Whether the process is where it was seen. While it is there its namespace keeps its number, so that whoever was seen with the same
 * number since is in the same namespace: programs that a test runs in a node carry no mark.
 */
const isStillIn = (seen: Seen): boolean => seen.netns !== '' && namespaceOf(seen.pid) === seen.netns && isRunning(seen);

/** Who belongs to another lab: those that carry its mark, and their descendants that carry none. */
function foreignIn(all: readonly Seen[], marks: readonly string[]): ReadonlySet<number> {
  const ofLab = (mark: string) => mark.startsWith(`${labMark}=`);
  const own = marks.find(ofLab);
  const labOf = ({ marks: carried }: Seen) => [...carried].find(ofLab);
  const foreign = new Set<number>();
  for (let before = -1; before !== foreign.size; ) {
    before = foreign.size;
    for (const seen of all) {
      const lab = labOf(seen);
      if (lab === undefined ? foreign.has(seen.parent) : lab !== own) foreign.add(seen.pid);
    }
  }
  return foreign;
}

/** The inode text (`net:[4026532008]`) of the network namespace of a process, or undefined if it is gone. */
export function namespaceOf(pid: number | 'self'): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

function readAll(): Seen[] {
  const found: Seen[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = statOf(pid);
    if (stat === undefined || stat.isDead) continue;
    found.push({
      pid,
      startTicks: stat.startTicks,
      parent: stat.parent,
      netns: namespaceOf(pid) ?? '',
      marks: marksOf(pid),
    });
  }
  return found;
}

/**
 * A killed process is dead when it is a zombie without other threads. Its first thread is a zombie up to 90 ms (seen with
 * kube-apiserver) before the last one is gone, and so long its ports are taken and its files open.
 */
function statOf(pid: number): { isDead: boolean; parent: number; startTicks: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold spaces and brackets; everything of use stands behind the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, parent] = fields;
    const threads = Number(fields[17]);
    return { isDead: state === 'Z' && threads <= 1, parent: Number(parent), startTicks: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function marksOf(pid: number): ReadonlySet<string> {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return new Set(variables.filter((variable) => variable.startsWith(labMark)));
  } catch {
    return new Set();
  }
}

/** This process and its ancestors: `down` called from a shell inside the lab must not kill its own caller. */
function ownLine(): ReadonlySet<number> {
  const line = new Set<number>();
  for (let pid = process.pid; pid > 0 && !line.has(pid); pid = statOf(pid)?.parent ?? 0) line.add(pid);
  return line;
}
