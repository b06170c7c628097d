/**
 * Conntrack is the connection table of the kernel, as far as Sallyport looks after it: connections of a slot or of an EIP
 * that is gone are forgotten, and how full the table is can be read. A slot is given again some day, and connections from
 * before must not join the policy that gets it. An EIP may be on another node by now, and its old connections must not
 * leave from here any more. The other way round, connections of pods of this node that left through another one have kept
 * their source so far, and a connection never gets another translation: forgotten, their next packet makes a new one.
 */
import { EgressError } from '../../api/error.ts';
import { familyOf, type Ip } from '../../core/ip/index.ts';
import type { CutOf } from '../../core/node/existing.ts';
import { markText, SLOT_KIND, slotMark } from '../../core/node/numbers.ts';
import type { ProgramResult, Programs } from '../program.ts';
import type { StateFile } from '../state-file.ts';
import type { Cut } from './cut.ts';
import type { DropStaleConnections } from './stale-connections.ts';

export interface Conntrack {
  /**
   * Forgets the connections of what is gone, and changes those of what leaves elsewhere, of both families; returns how many there were. Rejects with CONNTRACK_FAILED;
   * then some may be left, and it can be called again.
   */
  forget(gone: Gone): Promise<number>;
  /** Cuts open connections that may not go on; returns how many there were. Rejects with CONNTRACK_FAILED; then some may be left. */
  cut(cutOf: CutOf): Promise<number>;
  /** How full the table is, and what it has refused since the node started. Starts no program. */
  readUsage(): Promise<ConntrackUsage>;
}

/** What is no longer as connections may have it. */
export interface Gone {
  /** Slots that are gone. */
  readonly slots: readonly number[];
  /** EIPs that this node holds no longer. */
  readonly eips: readonly Ip[];
  /** Slots that leave from this node: connections of theirs that keep their source left through another one before. */
  readonly here: readonly number[];
  /** Slots that left from this node and leave elsewhere: connections of theirs that have an EIP keep their source from now on. */
  readonly elsewhere: readonly number[];
  /** The same, while this node still carries their EIP: those that no other node can know stay as they are. */
  readonly carried: readonly number[];
}

export interface ConntrackUsage {
  readonly entries: number;
  readonly limit: number;
  /** Connections that got no entry: for translated ones, all source ports of the EIP were taken. */
  readonly insertFailed: number;
  /** Packets that were dropped because no entry could be made. */
  readonly dropped: number;
}

export interface ConntrackDeps {
  readonly programs: Programs;
  /** The text of a file below /proc, such as `sys/net/netfilter/nf_conntrack_max`; undefined when it is not there. */
  readonly readProc: (path: string) => Promise<string | undefined>;
  readonly forgetStrays: DropStaleConnections;
  readonly cut: Cut;
  /** A file for commands, and where the program finds it. */
  readonly commands: StateFile & { readonly path: string };
}

// The kernel walks its whole table for every command: 12 ms each with 262,144 buckets (Linux 6.18, 2026-11).
const AT_ONCE = 128;
const LIMIT_MS = 30_000;

/** The connection table of this node. */
export const createConntrack = ({ programs, readProc, forgetStrays, cut, commands }: ConntrackDeps): Conntrack => {
  /** The marks of slots that connections carry. */
  const look = async (): Promise<ReadonlySet<number>> => {
    const found = new Set<number>();
    const ended = await programs.follow(
      ['conntrack', '-L', '-m', `${markText(SLOT_KIND)}/${markText(SLOT_CONNECTION_MASK)}`],
      (line) => {
        found.add(Number(/ mark=(\d+)/.exec(line)?.[1]));
      },
      AbortSignal.timeout(LIMIT_MS),
    );
    if (ended.code !== 0) throw failed(ended);
    return found;
  };

  /** One program takes many commands this way, and unlike a single one it does not call it a failure to find nothing. */
  const forgetSome = async (lines: readonly string[]): Promise<number> => {
    // A file, because conntrack opens its standard input by name, and a socket, as Node has it, cannot be opened.
    await commands.write(lines.map((line) => `${line}\n`).join(''));
    const ended = await programs.run(['conntrack', '-R', commands.path], { limitMs: LIMIT_MS });
    if (ended.code !== 0) throw failed(ended);
    // It prints what it forgets.
    return ended.stdout.split('\n').filter((line) => line !== '').length;
  };

  return {
    forget: async ({ slots, eips, here, elsewhere, carried }) => {
      // One look spares a walk for each slot that has no connection.
      const found = slots.length > 1 ? await look() : undefined;
      const busy = slots.filter((slot) => found?.has(slotMark(slot)) ?? true);
      const lines = [
        ...busy.map((slot) => `-D -m ${markText(slotMark(slot))}`),
        // Replies come to the EIP, so it is the destination of that direction.
        ...eips.map((ip) => `-D -f ipv${familyOf(ip)} --reply-dst ${ip}`),
      ];
      const turned = { here: new Set(here), elsewhere: new Set(elsewhere), carried: new Set(carried) };
      const hasTurned = here.length + elsewhere.length + carried.length > 0;
      let forgotten = hasTurned ? forgetStrays(turned) : 0;
      for (let start = 0; start < lines.length; start += AT_ONCE) {
        forgotten += await forgetSome(lines.slice(start, start + AT_ONCE));
      }
      await commands.remove();
      return forgotten;
    },
    cut: async (cutOf) => cut(cutOf),
    readUsage: async () => {
      const [entries, limit, statistics] = await Promise.all([
        readProc('sys/net/netfilter/nf_conntrack_count'),
        readProc('sys/net/netfilter/nf_conntrack_max'),
        readProc('net/stat/nf_conntrack'),
      ]);
      const sumOf = sums(statistics ?? '');
      return {
        entries: Number(entries ?? 0),
        limit: Number(limit ?? 0),
        insertFailed: sumOf('insert_failed'),
        dropped: sumOf('drop'),
      };
    },
  };
};

// All bits of a connection mark that are the same for every slot.
const SLOT_CONNECTION_MASK = 0xffffc000;

const failed = ({ code, stderr }: ProgramResult): EgressError => {
  const why = stderr.trim().split('\n', 1)[0] || `conntrack ended with ${code}`;
  return new EgressError('CONNTRACK_FAILED', `cannot forget the connections of slots and EIPs: ${why}`);
};

/** The file has one line of names and then one line of hexadecimal numbers for each processor. */
const sums = (text: string): ((name: string) => number) => {
  const [names = [], ...processors] = text.split('\n').map((line) => line.trim().split(/\s+/));
  return (name) => {
    const column = names.indexOf(name);
    return processors.reduce((sum, values) => sum + (Number.parseInt(values[column] ?? '0', 16) || 0), 0);
  };
};
