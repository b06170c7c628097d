/**
 * Makes changes: by the socket where it can, else by programs. `-force` lets a batch go on after a line that fails and names
 * the line; but some commands end the whole program instead (a neighbour that is refused does, iproute2 6.1), and then
 * nobody says how far it came. The batch is then run again in halves, down to the line at fault. So every change must do no
 * harm when it is made twice.
 */
import type { Programs } from '../program.ts';
import type { Access, RouteSocket } from './access.ts';
import { isDrop, type NetworkChange } from './change.ts';
import { messageOf } from './messages.ts';
import { type ChangeRefusal, type NetworkOutcome, refusalOf } from './outcome.ts';
import { type Tool, textOf, toolOf, tools } from './text.ts';

/** Makes the changes in the order given, as few programs as the tools allow. One that fails stops none of the others. */
export const runChanges = async (
  { programs, socket }: Access,
  changes: readonly NetworkChange[],
): Promise<NetworkOutcome> => {
  const refused: ChangeRefusal[] = [];
  for (const run of runsOf(changes)) {
    const safe = run.changes.filter((change) => isSafe(textOf(change)));
    const unsafe = run.changes.filter((change) => !isSafe(textOf(change)));
    refused.push(...unsafe.map((change) => refusalOf(change, 'a name holds characters that cannot be in a command')));
    if (!sent(socket, safe)) refused.push(...(await runBatch(programs, run.tool, safe)));
  }
  return { changed: changes.length - refused.length, refused };
};

/**
 * True when the kernel took every change from the socket. When it refuses one, or only the program knows how, the program
 * makes them all, and says why one fails.
 */
const sent = (socket: RouteSocket | undefined, changes: readonly NetworkChange[]): boolean => {
  if (socket === undefined) return false;
  const messages = changes.map((change) => messageOf(change, socket.indexOf));
  return messages.every((message) => message !== undefined) && socket.send(messages);
};

// The programs read quotes, comments and continued lines. Names of devices are chosen by people.
const isSafe = (line: string): boolean => /^[\w.:@%+/ -]+$/.test(line);

interface Run {
  readonly tool: Tool;
  readonly changes: NetworkChange[];
}

/** Neighbours in the list that are for the same tool, together. */
const runsOf = (changes: readonly NetworkChange[]): readonly Run[] => {
  const runs: Run[] = [];
  for (const change of changes) {
    const tool = toolOf(change);
    const last = runs.at(-1);
    if (last?.tool === tool) last.changes.push(change);
    else runs.push({ tool, changes: [change] });
  }
  return runs;
};

const runBatch = async (
  programs: Programs,
  tool: Tool,
  changes: readonly NetworkChange[],
): Promise<readonly ChangeRefusal[]> => {
  if (changes.length === 0) return [];
  const input = `${changes.map(textOf).join('\n')}\n`;
  const { code, stderr } = await programs.run([...tools[tool], '-force', '-batch', '-'], { input });
  if (code === 0) return [];
  const failures = failuresIn(stderr);
  if (code === FAILED_LINES && failures.size > 0) {
    return changes.flatMap((change, index) => refusalUnlessKnown(change, failures.get(index + 1)));
  }
  if (changes.length === 1 || code === NOT_STARTED || code === KILLED) {
    const message = code === KILLED ? `${tool} took too long` : stderr.trim() || `${tool} ended with ${code}`;
    return changes.flatMap((change) => refusalUnlessKnown(change, message));
  }
  const middle = Math.ceil(changes.length / 2);
  return [
    ...(await runBatch(programs, tool, changes.slice(0, middle))),
    ...(await runBatch(programs, tool, changes.slice(middle))),
  ];
};

// How iproute2 ends when it went through all lines and some failed; the others are told by src/dataplane/program.ts.
const FAILED_LINES = 1;
const NOT_STARTED = 127;
const KILLED = 128;

/** Messages by the number of the line; each message stands before the note that names its line. */
const failuresIn = (stderr: string): ReadonlyMap<number, string> => {
  const failures = new Map<number, string>();
  let message: string[] = [];
  for (const text of stderr.split('\n')) {
    const number = /^Command failed -:(\d+)$/.exec(text)?.[1];
    if (number === undefined) {
      message.push(text);
      continue;
    }
    failures.set(Number(number), message.join('\n'));
    message = [];
  }
  return failures;
};

const GONE =
  /No such file or directory|No such process|No such device|Cannot find device|address not found|Cannot assign requested address|FIB table does not exist/i;

/** A line that says what is already so was not refused: somebody else, or the first run of the batch, was quicker. */
const refusalUnlessKnown = (change: NetworkChange, message: string | undefined): readonly ChangeRefusal[] => {
  if (message === undefined) return [];
  const isSettled = isDrop(change) ? GONE.test(message) : change.kind === 'rule' && /File exists/.test(message);
  return isSettled ? [] : [refusalOf(change, message)];
};
