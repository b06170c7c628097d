/**
 * Reach: for which EIPs the outside is in reach of a node. A gateway node watches the carriers and routers of the ways that EIPs
 * leave by, and says for which networks one of them is gone. A family is lost by itself: of a pair, a node may still have the other one.
 */
import { type Cidr, contains, type IntervalSet, type Ip, parseCidr, parseSet } from '../ip/index.ts';
import type { PlannedEip } from './port.ts';

/** A network whose EIPs do not reach the outside from a node. */
export interface Unreached {
  /** `0.0.0.0/0` and `::/0` stand for all EIPs of a family. */
  readonly network: Cidr;
  /** False: not known, because the router has not answered since the agent was started. That is no reason to give an EIP up, but one not to get it. */
  readonly isLost: boolean;
}

/** What a node has said last. Two with the same words are told apart only by when they were said. */
export class NetworkReach {
  readonly unreached: readonly Unreached[];
  readonly #lost: Counter;
  readonly #doubtful: Counter;

  constructor(unreached: readonly Unreached[]) {
    this.unreached = unreached;
    this.#lost = new Counter(unreached.filter(({ isLost }) => isLost));
    this.#doubtful = new Counter(unreached);
  }

  /** True when no network is known to be lost. */
  get isWhole(): boolean {
    return this.#lost.isEmpty;
  }

  /** How many addresses of an EIP do not reach the outside: two are a pair. */
  lossOf(planned: PlannedEip): number {
    return this.#lost.countIn(planned);
  }

  /** The same, with those of which it is not known. */
  doubtOf(planned: PlannedEip): number {
    return this.#doubtful.countIn(planned);
  }

  /** True when these are the same words. */
  says(unreached: readonly Unreached[]): boolean {
    return (
      unreached.length === this.unreached.length &&
      unreached.every(({ network, isLost }, place) => {
        const own = this.unreached[place];
        return own?.network === network && own.isLost === isLost;
      })
    );
  }

  /** True when a network is lost here that was not lost before. */
  hasLostMoreThan(before: NetworkReach): boolean {
    const had = (network: Cidr): boolean => before.unreached.some((one) => one.isLost && one.network === network);
    return this.unreached.some(({ network, isLost }) => isLost && !had(network));
  }
}

/** Counts addresses in networks, each EIP once. */
class Counter {
  readonly #set: IntervalSet | undefined;
  readonly #counts = new WeakMap<PlannedEip, number>();

  constructor(unreached: readonly Unreached[]) {
    const set = parseSet(
      unreached.map(({ network }) => network),
      parseCidr,
    );
    this.#set = set.ok && unreached.length > 0 ? set.value : undefined;
  }

  get isEmpty(): boolean {
    return this.#set === undefined;
  }

  countIn(planned: PlannedEip): number {
    const set = this.#set;
    if (set === undefined) return 0;
    const known = this.#counts.get(planned);
    if (known !== undefined) return known;
    const count = addressesOf(planned).filter((ip) => contains(set, ip)).length;
    this.#counts.set(planned, count);
    return count;
  }
}

const addressesOf = ({ eip, addresses }: PlannedEip): readonly Ip[] => addresses ?? [eip];

/** Everything is in reach, as far as anybody knows. */
export const wholeReach = new NetworkReach([]);
