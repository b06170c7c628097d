/**
 * GateController makes the kernel hold what the protocol says, in the thread of the protocol and before anybody else is told: what
 * is let go is let go when `hold` returns, however busy the agent is. It opens and shuts the gate and announces; the rest
 * of what an EIP needs lies ready. Only the connections that another node had come first: until they are in the kernel, its
 * packets would begin new ones.
 */
import { familyOf, type Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import { isNodeGroupKey } from '../../core/ownership/node-group.ts';
import type { EipHold } from '../../core/ownership/port.ts';
import { isSameSet } from '../../core/values/equality.ts';
import type { Announcer } from '../../dataplane/announce/announcer.ts';
import type { GateSets, Hold } from '../../dataplane/gate/gate.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** EIP -> its addresses and where each is announced, for those that lie ready. Of a pair, the IPv4 address is the key. */
export type ReadyEips = ReadonlyMap<Ip, readonly Claim[]>;

/** node -> its tunnel addresses, of all families */
export type Hops = ReadonlyMap<string, readonly Ip[]>;

export interface GateControllerDeps {
  readonly gateSets: Pick<GateSets, 'hold' | 'prolong' | 'doubt'>;
  readonly announcer: Pick<Announcer, 'apply' | 'repeat'>;
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** For how long the kernel holds. The lease begins when the protocol says what to hold, and anew with each renewal. */
  readonly leaseMs: number;
  /** At a move by plan, what it does not know goes to the node before for so long after it was last told. */
  readonly handBackMs: number;
  /**
   * Brings the connections of addresses into the kernel; `isPlanned` when their owner is still there and may have more to tell.
   * Resolves when they are, or when that takes too long. Undefined: there is nobody who knows them.
   */
  readonly bring: (ips: readonly Ip[], isPlanned: boolean) => Promise<void> | undefined;
  /** The lease ends then; infinite when there is nothing to hold. */
  readonly onLease: (untilMs: number) => void;
  /** All addresses for which the kernel answers now, whenever they are others: told after they were announced. */
  readonly onOpened: (ips: readonly Ip[]) => void;
  /** EIPs that are to come here lie ready. */
  readonly onPrepared: (eips: readonly Ip[]) => void;
  /** The kernel would not; it is tried again with the next renewal. */
  readonly onRefused: (why: string) => void;
}

/**
 * The lease of many addresses is prolonged in parts, this many at once and with a pause between them: the kernel takes a
 * millisecond for a hundred, and no heartbeat leaves while it does. Of very many there are so many parts and no more, so that all have
 * the new lease a moment later.
 */
const PART = 100;
const MOST_PARTS = 50;
const PART_PAUSE_MS = 10;
/**
 * And not as often as others confirm it: so long after the last time for each address, but for a sixth of the lease at the most. It costs the
 * thread a hundredth of its time for each 300 addresses, and that thread has heartbeats to send.
 */
const REST_PER_ADDRESS_MS = 3;
const restOf = (leaseMs: number, addresses: number): number => Math.min(leaseMs / 6, addresses * REST_PER_ADDRESS_MS);

export class GateController {
  readonly #deps: GateControllerDeps;
  #held: readonly EipHold[];
  #ready: ReadyEips = new Map();
  /** EIPs about which the network is being asked: they may be owned, and the gate stays shut. */
  #awaited: ReadyEips = new Map();
  #hops: Hops = new Map();
  /** What the kernel was told last; undefined when it did not take it. */
  #put: readonly Hold[] | undefined;
  /** Whether it is known what lies ready. */
  #isTold = false;
  #heldUntilMs: number;
  /**
   * EIPs that the kernel held when the agent started, in these epochs, and for which nobody has spoken yet. It answers for them until
   * the lease is over, but they are not announced: another node may own them by now.
   */
  #found: ReadonlyMap<Ip, number>;
  #prepared: ReadonlySet<Ip> = new Set();
  /** What the kernel answers for, and what of it was told last; undefined before the first time. */
  #answered: ReadonlySet<Ip> = new Set();
  #opened: ReadonlySet<Ip> | undefined;
  /** EIPs that are to be announced again, together. */
  #again: Set<Ip> | undefined;
  /** The EIP of each address that lies ready; undefined until somebody asks. */
  #eipByIp: ReadonlyMap<Ip, Ip> | undefined;
  #renewedAtMs = -Infinity;
  /** Ends what is left to do of the last renewal. */
  #cancelParts = (): void => {};
  /** EIPs whose connections are being brought: until they are there, nothing may leave with them. */
  readonly #coming = new Set<Ip>();

  /** `held` is what the kernel holds already, and until when. */
  constructor(
    deps: GateControllerDeps,
    { held, untilMs }: { readonly held: readonly EipHold[]; readonly untilMs: number },
  ) {
    this.#deps = deps;
    this.#held = held;
    this.#heldUntilMs = held.length > 0 ? untilMs : Infinity;
    this.#found = new Map(held.map(({ eip, epoch }) => [eip, epoch]));
  }

  /** Until when the kernel holds what it was told to; infinite when that is nothing. */
  get heldUntilMs(): number {
    return this.#heldUntilMs;
  }

  /** Holds this and nothing else from now on. */
  hold(held: readonly EipHold[]): void {
    const { clock, leaseMs } = this.#deps;
    if (held.length === 0) this.#setLease(Infinity);
    else if (this.#heldUntilMs === Infinity) this.#setLease(clock.monotonicMs() + leaseMs);
    this.#bring(held);
    this.#held = held;
    this.#tellPrepared();
    this.#tell();
    this.#announce(held);
    this.#tellOpened();
  }

  /** Others have confirmed all that is owned: holds it for another lease. */
  renew(): void {
    const { clock, leaseMs } = this.#deps;
    const nowMs = clock.monotonicMs();
    const isSoon = nowMs < this.#renewedAtMs + restOf(leaseMs, this.#put?.length ?? 0);
    if (isSoon && this.#put !== undefined && this.#found.size === 0) return;
    this.#renewedAtMs = nowMs;
    if (this.#held.length > 0) this.#setLease(nowMs + leaseMs);
    const wereFound = this.#found.size > 0;
    this.#found = new Map();
    this.#prolong();
    if (wereFound) this.#announce(this.#held);
  }

  /**
   * Tells the kernel the same again, until the same time. At the start it holds what it held, both addresses of a pair, for long
   * enough.
   */
  repeat(): void {
    if (!this.#isTold) return;
    this.#cancelParts();
    this.#deps.gateSets.doubt();
    this.#tell(true);
    this.#tellOpened();
  }

  /** Holds what the kernel holds for the present lease, part by part. The first one prolongs the answers to knocks, too. */
  #prolong(): void {
    const { gateSets, clock, leaseMs } = this.#deps;
    this.#cancelParts();
    const all = this.#put;
    if (all === undefined || all.length === 0 || !this.#isTold) {
      this.repeat();
      return;
    }
    const size = Math.max(PART, Math.ceil(all.length / MOST_PARTS));
    const prolongFrom = (start: number): void => {
      // Some may have been let go since.
      const now = new Map(this.#put?.map((hold) => [hold.ip, hold]));
      const part = all.slice(start, start + size).filter((hold) => isAlike(hold, now.get(hold.ip)));
      const leftMs = Math.min(leaseMs, this.#heldUntilMs - clock.monotonicMs());
      if (leftMs <= 0) return;
      if (part.length > 0 && gateSets.prolong(part, leftMs) !== undefined) this.repeat();
      else if (start + size < all.length)
        this.#cancelParts = clock.after(PART_PAUSE_MS, () => prolongFrom(start + size));
    };
    prolongFrom(0);
  }

  #setLease(untilMs: number): void {
    if (untilMs === this.#heldUntilMs) return;
    this.#heldUntilMs = untilMs;
    this.#deps.onLease(untilMs);
  }

  /**
   * Tells the kernel what to hold, unless it was told just that; `isAlways`: also then. Nothing after the end of the lease: this agent
   * was stopped, and others have not spoken since.
   */
  #tell(isAlways = false): void {
    const leftMs = Math.min(this.#deps.leaseMs, this.#heldUntilMs - this.#deps.clock.monotonicMs());
    const open = leftMs > 0 ? this.#held.filter(({ eip }) => !this.#isShut(eip)) : [];
    const holds = open.flatMap((held) =>
      this.#claimsOf(held.eip).map(({ ip }) => {
        const { epoch, mode } = held;
        return { ip, epoch, isAnswered: mode === 'owned', ...this.#otherOf(held, ip) };
      }),
    );
    // To hold anew what is held makes the kernel busy for up to 40 ms, in which it opens nothing else.
    const isToldAlready = !isAlways && this.#put !== undefined && areSame(holds, this.#put);
    const why = isToldAlready ? undefined : this.#deps.gateSets.hold(holds, leftMs);
    this.#put = why === undefined ? holds : undefined;
    const answering = new Set(this.#answering(open).map(({ ip }) => ip));
    // A refused change leaves the kernel as it was: what is new is not open, what was open is.
    this.#answered = why === undefined ? answering : answering.intersection(this.#answered);
    if (why !== undefined) this.#deps.onRefused(why);
  }

  /** The EIP that an address belongs to: of a pair, the IPv4 address stands for both. */
  eipOf(ip: Ip): Ip {
    this.#eipByIp ??= new Map([...this.#ready].flatMap(([eip, claims]) => claims.map((claim) => [claim.ip, eip])));
    return this.#eipByIp.get(ip) ?? ip;
  }

  /** Announces an EIP anew that is held. Those of one turn are announced together: there may be thousands. */
  announce(eip: Ip): void {
    if (this.#again !== undefined) {
      this.#again.add(eip);
      return;
    }
    const again = new Set([eip]);
    this.#again = again;
    queueMicrotask(() => {
      this.#again = undefined;
      this.#deps.announcer.repeat(this.#announceable(this.#held.filter((held) => again.has(held.eip))));
    });
  }

  /** Other EIPs lie ready than before, or are being asked about. */
  setReady(ready: ReadyEips, awaited: ReadyEips = new Map()): void {
    this.#ready = ready;
    this.#eipByIp = undefined;
    this.#awaited = awaited;
    this.#isTold = true;
    this.#tell();
    this.#announce(this.#held);
    this.#tellOpened();
    this.#tellPrepared();
  }

  /** Where the other nodes of moves are. */
  setHops(hops: Hops): void {
    this.#hops = hops;
  }

  /** Where goes what belongs to no connection here. A node that has handed an EIP over stays ready for longer than it gets anything. */
  #otherOf({ mode, other }: EipHold, ip: Ip): Pick<Hold, 'other'> {
    if (isNodeGroupKey(ip)) return {};
    const via = this.#hops.get(other ?? '')?.find((hop) => familyOf(hop) === familyOf(ip));
    if (via === undefined) return {};
    const { handBackMs } = this.#deps;
    return { other: { via, forMs: mode === 'carried' ? 2 * handBackMs : handBackMs } };
  }

  // An EIP that does not lie ready has no address that anybody could answer for, nor has a node group: its own name is enough to hold it.
  #claimsOf(eip: Ip): readonly Claim[] {
    const claims = [...(this.#ready.get(eip) ?? []), ...(this.#awaited.get(eip) ?? [])];
    return claims.length > 0 ? claims : [{ ip: eip, interfaces: [] }];
  }

  #isShut(eip: Ip): boolean {
    return this.#coming.has(eip) || this.#awaited.has(eip);
  }

  #announce(held: readonly EipHold[]): void {
    this.#deps.announcer.apply(this.#announceable(held));
  }

  #announceable(held: readonly EipHold[]): readonly Claim[] {
    const isInForce = this.#deps.clock.monotonicMs() < this.#heldUntilMs;
    return this.#answering(isInForce ? held.filter(({ eip, epoch }) => this.#found.get(eip) !== epoch) : []);
  }

  /** What others may ask for: owned, ready, and with its connections. */
  #answering(held: readonly EipHold[]): readonly Claim[] {
    const owned = held.filter(({ mode, eip }) => mode === 'owned' && this.#ready.has(eip) && !this.#isShut(eip));
    return owned.flatMap(({ eip }) => this.#claimsOf(eip));
  }

  /** Brings the connections of what is owned from now on. What was prepared has them, but for the last ones. */
  #bring(held: readonly EipHold[]): void {
    const modeBefore = new Map(this.#held.map(({ eip, mode }) => [eip, mode]));
    const owned = new Set(held.filter(({ mode }) => mode === 'owned').map(({ eip }) => eip));
    const now = new Set(held.map(({ eip }) => eip));
    for (const eip of this.#coming) if (!now.has(eip)) this.#coming.delete(eip);
    const fresh = [...owned].filter((eip) => modeBefore.get(eip) !== 'owned');
    if (fresh.length === 0) return;
    const brought = this.#connectionsOf(fresh, false);
    if (brought === undefined) return;
    this.#shutUntil(
      brought,
      fresh.filter((eip) => modeBefore.get(eip) === undefined || this.#coming.has(eip)),
    );
  }

  #shutUntil(brought: Promise<void>, eips: readonly Ip[]): void {
    for (const eip of eips) this.#coming.add(eip);
    void brought.then(() => {
      for (const eip of eips) this.#coming.delete(eip);
      this.#tell();
      this.#announce(this.#held);
      this.#tellOpened();
    });
  }

  #tellOpened(): void {
    const [before, now] = [this.#opened, this.#answered];
    if (before !== undefined && isSameSet(before, now)) return;
    this.#opened = now;
    this.#deps.onOpened([...now]);
  }

  /** Connections of a node group have the address of the node before, and are of no use to another one. */
  #connectionsOf(eips: readonly Ip[], isPlanned: boolean): Promise<void> | undefined {
    const carried = eips.filter((eip) => !isNodeGroupKey(eip));
    const ips = carried.flatMap((eip) => this.#claimsOf(eip).map(({ ip }) => ip));
    return ips.length === 0 ? undefined : this.#deps.bring(ips, isPlanned);
  }

  #tellPrepared(): void {
    const lies = (eip: Ip) => this.#ready.has(eip) && !this.#awaited.has(eip);
    const prepared = this.#held.filter(({ mode, eip }) => mode === 'prepared' && lies(eip));
    const eips = new Set(prepared.map(({ eip }) => eip));
    const fresh = [...eips.difference(this.#prepared)];
    this.#prepared = eips;
    if (fresh.length === 0) return;
    const brought = this.#connectionsOf(fresh, true);
    if (brought === undefined) {
      this.#deps.onPrepared(fresh);
      return;
    }
    this.#shutUntil(brought, fresh);
    void brought.then(() => this.#deps.onPrepared(fresh.filter((eip) => this.#prepared.has(eip))));
  }
}

/** True when both say the same. What goes to another node lasts for its own time, and is told each time. */
const areSame = (some: readonly Hold[], others: readonly Hold[]): boolean =>
  some.length === others.length &&
  some.every((hold, place) => {
    const twin = others[place];
    return isAlike(hold, twin) && hold.other === undefined && twin?.other === undefined;
  });

const isAlike = (hold: Hold, twin: Hold | undefined): boolean =>
  twin?.ip === hold.ip && twin.epoch === hold.epoch && twin.isAnswered === hold.isAnswered;
