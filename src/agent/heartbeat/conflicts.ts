/**
 * ConflictWatch notices another machine that claims an EIP which this node answers for, for as long as it does. It tells a
 * foreign machine from our own nodes, defends the EIP, and says so until that machine is not heard any more.
 *
 * An EIP is the fixed address of a service, so it is never given up (RFC 5227, section 2.4, c): it is announced when a conflict
 * is heard, but not within DEFEND_INTERVAL of the last time, and kept.
 */
import type { Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import { isSameList } from '../../core/values/equality.ts';
import type { AddressClaim, ConflictListener } from '../../dataplane/announce/conflict-listener.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** A foreign machine that claims an EIP of this node. */
export type Conflict = AddressClaim;

export interface ConflictWatchDeps {
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>;
  readonly listener: ConflictListener;
  /** Whether a MAC address is one of this machine. */
  readonly isOwn: (mac: string) => boolean;
  /** All conflicts, whenever they are others. */
  readonly onChange: (conflicts: readonly Conflict[]) => void;
  /** Other nodes of ours speak as if they had these EIPs: the protocol says to them who does. */
  readonly onOurNodes: (ips: readonly Ip[]) => void;
}

/** How often sockets are read. */
const LOOK_MS = 100;
/** DEFEND_INTERVAL of RFC 5227. */
const DEFEND_MS = 10_000;
/** A machine that was not heard for so long, though it was asked several times, is gone. */
const QUIET_MS = 10_000;
const QUIET_ASKS = 3;
/** How often a machine that claims an EIP is asked whether it still does. */
const AGAIN_MS = 2_000;
/** Every EIP is asked about so often, to find machines that answer and never speak by themselves, */
const ROUND_MS = 30_000;
/** and the first time so long after it came: it was asked about before that, if no node of ours had it. */
const FIRST_MS = 1_000;
/** No more questions than this at each look, 20 a second: a round of 5,000 EIPs takes four minutes. */
const ASKS_AT_ONCE = 2;
/** How long a node of ours has to hear who owns before it is told again. */
const TELL_MS = 1_000;

interface ConflictState {
  readonly conflict: Conflict;
  heardAtMs: number;
  askedAtMs: number;
  /** How many questions in a row were not answered. */
  unanswered: number;
}

export class ConflictWatch {
  readonly #deps: ConflictWatchDeps;
  #claims: readonly Claim[] = [];
  /** Claims as they were at the last look, by address. */
  #claimByIp: ReadonlyMap<Ip, Claim> = new Map();
  #heeded: readonly Claim[] = this.#claims;
  #ourMacs: ReadonlySet<string> = new Set();
  /** By EIP, the one that was asked last at the end. One machine is enough to tell about. */
  readonly #known = new Map<Ip, ConflictState>();
  readonly #defendedAtMs = new Map<Ip, number>();
  readonly #toldAtMs = new Map<Ip, number>();
  /** EIPs that came and were not asked about yet, in order. */
  readonly #fresh: { readonly ip: Ip; readonly dueMs: number }[] = [];
  #round: { readonly ips: readonly Ip[]; place: number; readonly startedAtMs: number } = nothingToAsk;
  /** EIPs as which nodes of ours were heard to speak at this look. */
  #ourOthers: Ip[] = [];
  #hasChanged = false;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: ConflictWatchDeps) {
    this.#deps = deps;
  }

  /** These EIPs are answered for and announced from now on. Costs nothing before the next look. */
  watch(claims: readonly Claim[]): void {
    this.#claims = claims;
    if (this.#cancel === undefined && claims.length > 0) this.#sleep();
  }

  /** The MAC addresses of our nodes. A machine that turns out to be one of them is not foreign. */
  setOurMacs(macs: ReadonlySet<string>): void {
    this.#ourMacs = macs;
    for (const [ip, { conflict }] of this.#known) if (macs.has(conflict.mac)) this.#forget(ip);
    this.#tell();
  }

  /** May be called twice. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#deps.listener.close();
  }

  #sleep(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#deps.clock.after(LOOK_MS, () => {
      this.#cancel = undefined;
      this.#look();
      if (this.#claims.length > 0) this.#sleep();
    });
  }

  #look(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#claims !== this.#heeded) this.#follow(nowMs);
    for (const heard of this.#deps.listener.heard()) this.#judge(heard, nowMs);
    const ours = this.#ourOthers;
    this.#ourOthers = [];
    if (ours.length > 0) this.#deps.onOurNodes(ours);
    this.#expire(nowMs);
    this.#askKnown(nowMs);
    this.#askOthers(nowMs);
    this.#tell();
  }

  /** Other EIPs than at the last look. */
  #follow(nowMs: number): void {
    const before = this.#claimByIp;
    this.#heeded = this.#claims;
    this.#claimByIp = new Map(this.#claims.map((claim) => [claim.ip, claim]));
    const isSame =
      before.size === this.#claimByIp.size &&
      this.#claims.every(({ ip, interfaces }) => isSameList(before.get(ip)?.interfaces ?? [], interfaces));
    if (isSame) return;
    if (before.size === 0) this.#round = { ...nothingToAsk, startedAtMs: nowMs };
    this.#deps.listener.listen(this.#claims);
    for (const ip of this.#claimByIp.keys()) {
      if (!before.has(ip)) this.#fresh.push({ ip, dueMs: nowMs + FIRST_MS });
    }
    for (const ip of before.keys()) if (!this.#claimByIp.has(ip)) this.#forget(ip);
  }

  #judge(heard: AddressClaim, nowMs: number): void {
    const { ip, mac } = heard;
    const claim = this.#claimByIp.get(ip);
    if (claim === undefined) return;
    if (this.#ourMacs.has(mac)) {
      if (nowMs < (this.#toldAtMs.get(ip) ?? -Infinity) + TELL_MS) return;
      this.#toldAtMs.set(ip, nowMs);
      if (!this.#deps.isOwn(mac)) this.#ourOthers.push(ip);
      return;
    }
    const known = this.#known.get(ip);
    if (known?.conflict.mac === mac) {
      known.heardAtMs = nowMs;
      known.unanswered = 0;
    } else if (known === undefined || known.unanswered >= QUIET_ASKS) {
      if (this.#deps.isOwn(mac)) return;
      this.#known.set(ip, { conflict: heard, heardAtMs: nowMs, askedAtMs: nowMs, unanswered: 0 });
      this.#hasChanged = true;
    }
    if (nowMs < (this.#defendedAtMs.get(ip) ?? -Infinity) + DEFEND_MS) return;
    this.#defendedAtMs.set(ip, nowMs);
    this.#deps.listener.announce(claim);
  }

  #expire(nowMs: number): void {
    for (const [ip, { heardAtMs, unanswered }] of this.#known) {
      if (unanswered < QUIET_ASKS || nowMs < heardAtMs + QUIET_MS) continue;
      this.#known.delete(ip);
      this.#hasChanged = true;
    }
  }

  /** Asks those that claim an EIP whether they still do, each in its turn. */
  #askKnown(nowMs: number): void {
    let left = ASKS_AT_ONCE;
    for (const [ip, known] of this.#known) {
      const claim = this.#claimByIp.get(ip);
      if (left === 0) return;
      if (claim === undefined || nowMs < known.askedAtMs + AGAIN_MS) continue;
      this.#deps.listener.ask(claim);
      known.askedAtMs = nowMs;
      known.unanswered += 1;
      left -= 1;
      this.#known.delete(ip);
      this.#known.set(ip, known);
    }
  }

  /** Asks about EIPs of which nothing was heard: new ones first, then all of them, round after round. */
  #askOthers(nowMs: number): void {
    let left = ASKS_AT_ONCE;
    const ask = (ip: Ip | undefined): void => {
      const claim = ip && this.#claimByIp.get(ip);
      if (claim === undefined || this.#known.has(claim.ip)) return;
      this.#deps.listener.ask(claim);
      left -= 1;
    };
    while (left > 0 && (this.#fresh[0]?.dueMs ?? Infinity) <= nowMs) ask(this.#fresh.shift()?.ip);
    if (this.#round.place >= this.#round.ips.length && nowMs >= this.#round.startedAtMs + ROUND_MS) {
      this.#round = { ips: [...this.#claimByIp.keys()], place: 0, startedAtMs: nowMs };
    }
    while (left > 0 && this.#round.place < this.#round.ips.length) {
      ask(this.#round.ips[this.#round.place]);
      this.#round.place += 1;
    }
  }

  #forget(ip: Ip): void {
    this.#hasChanged = this.#known.delete(ip) || this.#hasChanged;
    this.#defendedAtMs.delete(ip);
    this.#toldAtMs.delete(ip);
  }

  #tell(): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    this.#deps.onChange([...this.#known.values()].map(({ conflict }) => conflict));
  }
}

const nothingToAsk = { ips: [], place: 0, startedAtMs: -Infinity };
