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

  const keep = (known: ReadonlyMap<string, Trace>): Promise<void> =>
    known.size === 0 ? memory.remove() : memory.write(`${JSON.stringify(Object.fromEntries(known), undefined, 2)}\n`);

  /** Writes a setting; throws when the kernel does not keep it. */
  const set = (path: string, value: string): void => {
    files.write(path, value);
    const now = settingAt(files, path);
    if (now !== value) throw new Error(`the kernel keeps it at ${now}`);
  };

  /** True when the setting was written. What others have changed since is theirs. */
  const putBack = (path: string, { before, ours }: Trace): boolean => {
    const isOurs = !NEVER_PUT_BACK.has(path) && settingAt(files, path) === ours && before !== ours;
    if (isOurs) files.write(path, before);
    return isOurs;
  };

  const apply = async (desired: ReadonlyMap<string, string>): Promise<SysctlOutcome> => {
    traces ??= readTraces(await memory.read());
    const known = traces;
    const changed: string[] = [];
    const refused: { path: string; message: string }[] = [];
    const refuse = (path: string, error: unknown): void => {
      refused.push({ path, message: error instanceof Error ? error.message : String(error) });
    };
    const differing: (readonly [path: string, value: string])[] = [];
    for (const [path, wanted] of desired) {
      try {
        const value = reachable(files, path, wanted);
        const before = settingAt(files, path);
        if (before === undefined) throw new Error('there is no such setting');
        if (before === value) continue;
        known.set(path, { before: known.get(path)?.before ?? before, ours: value });
        differing.push([path, value]);
      } catch (error) {
        refuse(path, error);
      }
    }
    // All of them at once: an EIP that comes waits for this.
    const kept = differing.length === 0 ? undefined : await failureOf(keep(known));
    for (const [path, value] of differing) {
      try {
        if (kept !== undefined) throw kept.error;
        set(path, value);
        changed.push(path);
      } catch (error) {
        refuse(path, error);
      }
    }
    const gone = [...known].filter(([path]) => !desired.has(path));
    for (const [path, trace] of gone) {
      try {
        if (putBack(path, trace)) changed.push(path);
        known.delete(path);
      } catch (error) {
        refuse(path, error);
      }
    }
    const forgotten = gone.length === 0 ? undefined : await failureOf(keep(known));
    if (forgotten !== undefined) for (const [path] of gone) refuse(path, forgotten.error);
    return { changed, refused };
  };

  return {
    apply,
    isInStep: (desired) => {
      try {
        return [...desired].every(([path, wanted]) => settingAt(files, path) === reachable(files, path, wanted));
      } catch {
        return false;
      }
    },
    restore: () => apply(new Map()),
  };
};

const failureOf = (work: Promise<void>): Promise<{ readonly error: unknown } | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );

/**
 * The value that comes nearest to the wanted one. Of `rp_filter` the kernel takes the larger one of the device and of `all`
 * (Documentation/networking/ip-sysctl.rst): where all devices are checked, the loosest check that a device can have is 2.
 */
const reachable = (files: Files, path: string, wanted: string): string => {
  if (wanted !== '0' || !/^net\/ipv4\/conf\/.+\/rp_filter$/.test(path)) return wanted;
  return settingAt(files, 'net/ipv4/conf/all/rp_filter') === '0' ? '0' : '2';
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
