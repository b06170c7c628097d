/** A gate in memory: it holds what it was told, for as long as the clock says, and refuses what a kernel would. */
import type { Ip } from '../../../core/ip/index.ts';
import type { Gate, Hold } from '../gate.ts';

export interface FakeGate extends Gate {
  /** EIPs that the kernel answers for. */
  answered(): readonly Ip[];
  /** EIPs that packets may leave with. */
  sent(): readonly Ip[];
  /** EIP -> the tunnel address to which goes what belongs to no connection here. */
  others(): ReadonlyMap<Ip, Ip>;
  readonly covered: ReadonlySet<Ip>;
  /** As somebody who takes the tables away. */
  tamper(): void;
}

interface Lasting extends Hold {
  readonly untilMs: number;
}

/** A gate without tables, as on a node that has just booted. */
export const createFakeGate = (clock: { monotonicMs(): number }): FakeGate => {
  let hasTables = false;
  let covered: ReadonlySet<Ip> = new Set();
  let held: readonly Lasting[] = [];
  const now = (): readonly Lasting[] => held.filter(({ untilMs }) => untilMs > clock.monotonicMs());
  const answered = (): readonly Lasting[] => now().filter(({ isAnswered }) => isAnswered);
  const missing = 'no such file or directory';
  return {
    get covered() {
      return covered;
    },
    answered: () => answered().map(({ ip }) => ip),
    sent: () => now().map(({ ip }) => ip),
    others: () => new Map(now().flatMap(({ ip, other }) => (other === undefined ? [] : [[ip, other.via] as const]))),
    tamper: () => {
      hasTables = false;
      held = [];
      covered = new Set();
    },
    prepare: async () => {
      hasTables = true;
    },
    read: async () =>
      hasTables
        ? answered().map(({ ip, epoch, untilMs }) => ({ ip, epoch, leftMs: untilMs - clock.monotonicMs() }))
        : undefined,
    remove: async () => {
      hasTables = false;
      held = [];
      covered = new Set();
    },
    hold: (holds, leaseMs) => {
      if (!hasTables) return missing;
      held = holds.map((hold) => ({ ...hold, untilMs: clock.monotonicMs() + leaseMs }));
      return undefined;
    },
    prolong: (some, leaseMs) => {
      if (!hasTables) return missing;
      const kept = new Set(some.map(({ ip }) => ip));
      if (kept.size > now().filter(({ ip }) => kept.has(ip)).length) return missing;
      held = held.map((one) => (kept.has(one.ip) ? { ...one, untilMs: clock.monotonicMs() + leaseMs } : one));
      return undefined;
    },
    cover: (ips) => {
      if (!hasTables) return missing;
      covered = new Set(ips);
      return undefined;
    },
    // It always takes all that it is told.
    doubt: () => {},
    close: () => {},
  };
};
