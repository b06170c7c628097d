/**
 * Handover: an owner gives EIPs to another node on purpose, because the plan says so or because it has lost its way out.
 * A planned move makes before it breaks: the new node prepares its kernel, then the old one stops answering for the EIP
 * and releases its votes, the new one collects them and announces, and the old one carries packets that still arrive.
 * For that time each knows the other: an answer may come to the one while only the other knows its connection.
 */
import type { Ip } from '../ip/index.ts';
import type { Context } from './context.ts';
import type { Holding } from './message.ts';
import type { PlannedEip } from './port.ts';

/** An EIP that was offered to this node. */
interface Offered {
  readonly from: string;
  readonly epoch: number;
  isPrepared: boolean;
}

export class Handover {
  readonly #context: Context;
  readonly #offeredByEip = new Map<Ip, Offered>();
  #offerAtMs = -Infinity;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Offers what others should have by plan, and hands over what cannot get out here. */
  pass(nowMs: number): void {
    const { holdings, plannedByEip, reach } = this.#context;
    const isOfferTime = nowMs >= this.#offerAtMs;
    if (holdings.size === 0 || (reach.isWhole && !isOfferTime)) return;
    const offers = new Map<string, Holding[]>();
    for (const own of [...holdings.all]) {
      const planned = plannedByEip.get(own.eip);
      if (own.state !== 'owned' || planned === undefined) continue;
      const next = this.#nearerOutside(planned, nowMs);
      if (next !== undefined) {
        this.#context.letGo(own, 'uplink lost', next);
        continue;
      }
      const target = this.#targetOf(own, nowMs);
      if (target === undefined || !isOfferTime) continue;
      const list = offers.get(target) ?? [];
      list.push({ eip: own.eip, epoch: own.epoch });
      offers.set(target, list);
    }
    if (offers.size > 0) this.#offerAtMs = nowMs + 2 * this.#context.timing.heartbeatMs;
    for (const [target, list] of offers) {
      this.#context.sendParts(target, list, (holdings) => ({ kind: 'offer', holdings }));
    }
  }

  /** The owner wants to hand EIPs over to this node: the kernel is prepared first. */
  offered(from: string, offers: readonly Holding[], nowMs: number): void {
    const { holdings, timing } = this.#context;
    const untilMs = nowMs + 10 * timing.silenceMs;
    const ready: Holding[] = [];
    for (const { eip, epoch } of offers) {
      const state = holdings.get(eip)?.state;
      if (state === 'owned' || state === 'asking') continue;
      const known = this.#offeredByEip.get(eip);
      const isSame = known?.from === from && known.epoch === epoch && state === 'prepared';
      // The kernel says once that it has what it needs, also if the owner takes the EIP anew meanwhile.
      const isPrepared = state === 'prepared' && known?.isPrepared === true;
      if (!isSame) {
        this.#offeredByEip.set(eip, { from, epoch, isPrepared });
        this.#context.hasChanged = true;
      }
      if (isPrepared) ready.push({ eip, epoch });
      holdings.put(eip, epoch, 'prepared', nowMs, untilMs);
      holdings.meet(eip, from, untilMs);
    }
    this.#context.sendParts(from, ready, (holdings) => ({ kind: 'ready', holdings }));
  }

  /** The kernel is prepared. */
  prepared(eips: readonly Ip[]): void {
    for (const eip of eips) {
      const offered = this.#offeredByEip.get(eip);
      if (offered === undefined || this.#context.holdings.get(eip)?.state !== 'prepared') continue;
      offered.isPrepared = true;
      this.#context.send(offered.from, { kind: 'ready', holdings: [{ eip, epoch: offered.epoch }] });
    }
  }

  /** The other node has prepared its kernel: the EIPs go to it, unless the plan has changed meanwhile. */
  ready(from: string, prepared: readonly Holding[], nowMs: number): void {
    const { holdings, timing } = this.#context;
    for (const { eip, epoch } of prepared) {
      const own = holdings.get(eip);
      if (own?.state !== 'owned' || own.epoch !== epoch || this.#targetOf(own, nowMs) !== from) continue;
      this.#context.letGo(own, 'plan', from);
      holdings.put(eip, epoch, 'carried', nowMs, nowMs + timing.lingerMs);
      holdings.meet(eip, from, nowMs + timing.lingerMs);
    }
  }

  /** Forgets what has come or will not come. */
  tidy(): void {
    for (const eip of [...this.#offeredByEip.keys()]) {
      const state = this.#context.holdings.get(eip)?.state;
      if (state !== 'prepared' && state !== 'asking') this.#offeredByEip.delete(eip);
    }
  }

  /** The node that should own an EIP of ours. A plan that was made before our epoch is out of date, and moves nothing. */
  #targetOf({ eip, epoch }: Holding, nowMs: number): string | undefined {
    const planned = this.#context.plannedByEip.get(eip);
    const target = planned?.candidates[0];
    if (planned === undefined || target === undefined || target === this.#context.node) return undefined;
    if (planned.epoch < epoch || !this.#context.hearing.isHeard(target, nowMs)) return undefined;
    return this.#context.reachOf(target).lossOf(planned) <= this.#context.reach.lossOf(planned) ? target : undefined;
  }

  /**
   * The first of the nodes that reach the outside for more addresses of an EIP of ours than this one, which has lost some; undefined when
   * there is none. Not as many others: of two nodes that have lost one family each, neither is better, and the pair stays.
   */
  #nearerOutside(planned: PlannedEip, nowMs: number): string | undefined {
    const { node, reach, hearing, lostAtMs, timing } = this.#context;
    // When the router is gone, everybody notices, but not at the same moment.
    if (reach.isWhole || nowMs < lostAtMs + timing.silenceMs) return undefined;
    let least = reach.lossOf(planned);
    let next: string | undefined;
    for (const name of least === 0 ? [] : planned.candidates) {
      if (name === node || !hearing.isHeard(name, nowMs) || !hearing.isReachSettled(name, nowMs)) continue;
      const doubt = hearing.reachOf(name).doubtOf(planned);
      if (doubt >= least) continue;
      least = doubt;
      next = name;
    }
    return next;
  }
}
