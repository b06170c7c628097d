/**
 * Names that stand still. nginx keeps connections only to addresses that are written in its configuration, and writing one
 * anew is a reload. So the addresses of a name are written there while they stay the same; a name that moves is resolved by nginx
 * for each request from then on, and is not trusted again for a while, longer each time. A reload ends connections of all rules
 * within the hour, so there are few: after three moves in an hour no name is trusted until the hour is over.
 */
import type { Ip } from '../../core/ip/index.ts';
import type { RuleSet } from '../../core/proxy/served.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';

export interface SteadyDeps {
  /** Where a name may lead now; empty when nowhere. It remembers answers for as long as they hold. */
  readonly lookUp: (name: string) => Promise<readonly Ip[]>;
  readonly clock: Clock;
}

/** Name -> the addresses that are written for it, in order. */
export type Written = ReadonlyMap<string, readonly Ip[]>;

/** A change does not wait longer for names; those that are not known by then are resolved by nginx. */
const CHOICE_LIMIT_MS = 500;
/** How long a name is not trusted after it has moved: twice as long each time. */
const RESTLESS_MS = { first: 600_000, most: 86_400_000 } as const;

/** So many moves in so long a time, and no more. */
const MOVES = { most: 3, inMs: 3_600_000 } as const;

interface Restless {
  readonly untilMs: number;
  readonly forMs: number;
}

export class SteadyNames {
  readonly #deps: SteadyDeps;
  /** Name -> for how long it is not trusted. It outlives its rule: a rule that comes and goes does not make a name steady. */
  readonly #restless = new Map<string, Restless>();
  #written: Written = new Map();
  /** When names have moved; those of one look count once, since they cost one reload. */
  #movedAtMs: readonly number[] = [];

  constructor(deps: SteadyDeps) {
    this.#deps = deps;
  }

  /** The names of the rules whose addresses are to be written, with them. From now on these are watched. */
  async choose(rules: Pick<RuleSet, 'rules'>): Promise<Written> {
    const { clock, lookUp } = this.#deps;
    const nowMs = clock.monotonicMs();
    this.#movedAtMs = this.#movedAtMs.filter((atMs) => nowMs - atMs < MOVES.inMs);
    const names =
      this.#movedAtMs.length < MOVES.most
        ? namesOf(rules).filter((name) => (this.#restless.get(name)?.untilMs ?? 0) <= nowMs)
        : [];
    const known = new Map<string, readonly Ip[]>();
    const all = Promise.all(
      names.map(async (name) => {
        known.set(name, await lookUp(name));
      }),
    );
    const limit = new AbortController();
    await Promise.race([all, wait(clock, CHOICE_LIMIT_MS, limit.signal)]);
    limit.abort();
    this.#written = new Map([...known].filter(([, ips]) => ips.length > 0).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    return this.#written;
  }

  /** True when a watched name has moved, so that the configuration must be written anew. */
  async haveMoved(): Promise<boolean> {
    const { clock, lookUp } = this.#deps;
    const written = this.#written;
    const moved: string[] = [];
    await Promise.all(
      [...written].map(async ([name, ips]) => {
        if (!isSame(ips, await lookUp(name))) moved.push(name);
      }),
    );
    // Others were chosen meanwhile, from fresh answers.
    if (this.#written !== written) return false;
    const nowMs = clock.monotonicMs();
    for (const name of moved) {
      const forMs = Math.min((this.#restless.get(name)?.forMs ?? RESTLESS_MS.first / 2) * 2, RESTLESS_MS.most);
      this.#restless.set(name, { untilMs: nowMs + forMs, forMs });
    }
    if (moved.length > 0) this.#movedAtMs = [...this.#movedAtMs, nowMs];
    return moved.length > 0;
  }
}

/** Names of hosts that are asked for in plain requests; tunnels and TLS have a connection each anyway. */
const namesOf = ({ rules }: Pick<RuleSet, 'rules'>): string[] => {
  const names = rules.flatMap((rule) =>
    rule.kind === 'http' && !rule.isTls && rule.host.kind === 'exact' ? [rule.host.name] : [],
  );
  return [...new Set(names)];
};

/** Answers come sorted. */
const isSame = (a: readonly Ip[], b: readonly Ip[]): boolean =>
  a.length === b.length && a.every((ip, index) => ip === b[index]);
