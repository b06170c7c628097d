/**
 * Sysctls makes kernel settings as desired, and puts them back when they are no longer wanted. What a setting was before
 * the first change is remembered beyond the life of the agent.
 */
import type { StateFile } from '../state-file.ts';
import type { Files } from './files.ts';

export interface Sysctls {
  /** Sets what differs, and puts back what is no longer desired. What fails is told and stops nothing. */
  apply(desired: ReadonlyMap<string, string>): Promise<SysctlOutcome>;
  /** True when every setting has its desired value now. Cheap enough to be asked every second. */
  isInStep(desired: ReadonlyMap<string, string>): boolean;
  /** Puts back everything that still has the value we gave it: the same as to desire nothing. */
  restore(): Promise<SysctlOutcome>;
}

export interface SysctlOutcome {
  /** Paths that were written. */
  readonly changed: readonly string[];
  readonly refused: readonly { readonly path: string; readonly message: string }[];
}

export interface SysctlDeps {
  /** Settings by path, such as `net/ipv4/ip_forward`. */
  readonly files: Files;
  /** Where the values from before are kept. */
  readonly memory: StateFile;
}

/** What we have done to a setting. */
interface Trace {
  readonly before: string;
  readonly ours: string;
}

/**
 * Settings that stay as we made them. An agent often starts before the CNI of its node: what was off then has been relied
 * on ever since, and switching it off would cut off every pod.
 */
const NEVER_PUT_BACK: ReadonlySet<string> = new Set(['net/ipv4/ip_forward', 'net/ipv6/conf/all/forwarding']);

/** The settings of this node. */
export const createSysctls = ({ files, memory }: SysctlDeps): Sysctls => {
  // Read when it is first needed, and written before every change.
  let traces: Map<string, Trace> | undefined;

  const remember = async (known: Map<string, Trace>, path: string, trace: Trace | undefined): Promise<void> => {
    if (trace === undefined) known.delete(path);
    else known.set(path, trace);
    if (known.size === 0) await memory.remove();
    else await memory.write(`${JSON.stringify(Object.fromEntries(known), undefined, 2)}\n`);
  };

  /** True when the setting was written; throws when it could not be made. */
  const set = async (known: Map<string, Trace>, path: string, value: string): Promise<boolean> => {
    const before = settingAt(files, path);
    if (before === undefined) throw new Error('there is no such setting');
    if (before === value) return false;
    await remember(known, path, { before: known.get(path)?.before ?? before, ours: value });
    files.write(path, value);
    const now = settingAt(files, path);
    if (now !== value) throw new Error(`the kernel keeps it at ${now}`);
    return true;
  };

  /** True when the setting was written. What others have changed since is theirs. */
  const putBack = async (known: Map<string, Trace>, path: string, { before, ours }: Trace): Promise<boolean> => {
    const isOurs = !NEVER_PUT_BACK.has(path) && settingAt(files, path) === ours && before !== ours;
    if (isOurs) files.write(path, before);
    await remember(known, path, undefined);
    return isOurs;
  };

  const apply = async (desired: ReadonlyMap<string, string>): Promise<SysctlOutcome> => {
    traces ??= readTraces(await memory.read());
    const known = traces;
    const changed: string[] = [];
    const refused: { path: string; message: string }[] = [];
    const attempt = async (path: string, write: () => Promise<boolean>): Promise<void> => {
      try {
        if (await write()) changed.push(path);
      } catch (error) {
        refused.push({ path, message: error instanceof Error ? error.message : String(error) });
      }
    };
    for (const [path, value] of desired) await attempt(path, () => set(known, path, value));
    for (const [path, trace] of [...known]) {
      if (!desired.has(path)) await attempt(path, () => putBack(known, path, trace));
    }
    return { changed, refused };
  };

  return {
    apply,
    isInStep: (desired) => {
      try {
        return [...desired].every(([path, value]) => settingAt(files, path) === value);
      } catch {
        return false;
      }
    },
    restore: () => apply(new Map()),
  };
};

/** The kernel ends every value with a line feed. */
const settingAt = (files: Files, path: string): string | undefined => files.read(path)?.trim();

/** What was remembered. A text that nobody can read, from a disk that was full, is as good as none. */
const readTraces = (text: string | undefined): Map<string, Trace> => {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return new Map(Object.entries(value ?? {}).filter((entry): entry is [string, Trace] => isTrace(entry[1])));
  } catch {
    return new Map();
  }
};

const isTrace = (value: unknown): value is Trace =>
  typeof value === 'object' &&
  value !== null &&
  'before' in value &&
  typeof value.before === 'string' &&
  'ours' in value &&
  typeof value.ours === 'string';
