/** Replies: what this node does about what others say: it votes, steps in, reassures, takes note. */
import type { Ip } from '../ip/index.ts';
import type { Candidacy } from './candidacy.ts';
import type { Context } from './context.ts';
import {
  type Beat,
  type Holding,
  type Notice,
  PROMISES_FROM,
  type Release,
  type RequestedHolding,
  type VoteRequest,
} from './message.ts';
import type { NoticedOwner } from './planned.ts';

export class Replies {
  readonly #context: Context;
  readonly #candidacy: Candidacy;
  readonly #ownerByEip = new Map<Ip, NoticedOwner>();
  readonly #announcedAtMs = new Map<Ip, number>();

  constructor(context: Context, candidacy: Candidacy) {
    this.#context = context;
    this.#candidacy = candidacy;
  }

  /** Answers a heartbeat, and says for how long its sender may be silent from now on, if that is longer than it knows. */
  acknowledge(from: string, { sequence, unreached }: Beat, nowMs: number): void {
    const { hearing, voter, timing } = this.#context;
    hearing.setReach(from, unreached, nowMs);
    const silenceMs = Math.floor(hearing.silenceOf(from));
    const isPromised = silenceMs > timing.silenceMs && sequence >= PROMISES_FROM;
    const promisedMs = isPromised ? silenceMs : undefined;
    this.#context.send(from, { kind: 'ack', sequence, losses: voter.lossesOf(from), promisedMs });
  }

  /** Somebody asks for our vote. */
  judge(from: string, { sequence, generation, wanted }: VoteRequest, nowMs: number): void {
    const { node, voter, holdings, plan } = this.#context;
    this.#answerRival(from, wanted, nowMs);
    for (const { eip, epoch, isOwned } of wanted) {
      const own = holdings.get(eip);
      if (own?.state === 'owned' && isOwned && epoch > own.epoch) this.#context.letGo(own, 'later epoch', from);
      const isOurs = own?.state === 'owned' || own?.state === 'asking';
      const vote = voter.voteFor(eip);
      if (vote?.node === node && !isOurs) voter.release(node, { eip, epoch: vote.epoch }, undefined);
    }
    // Majorities of electorates that are one step apart share a voter; of others they need not.
    if (Math.abs(generation - plan.electorate.generation) > 1) return;
    this.#candidacy.giveWay(from, wanted, nowMs);
    const { granted, refused, doubted } = voter.judge(from, wanted, nowMs);
    this.#context.send(from, { kind: 'answer', sequence, losses: voter.lossesOf(from), granted, refused });
    for (const [holder, holdings] of doubted) {
      if (holder !== node) this.#context.send(holder, { kind: 'doubt', holdings });
    }
  }

  /** Somebody does not want EIPs any more: it may be our turn. */
  free(from: string, { released, to }: Release, nowMs: number): void {
    const { voter, plannedByEip } = this.#context;
    this.#announceOver(released, nowMs);
    const freed = released.filter((holding) => voter.release(from, holding, to));
    const planned = freed.map(({ eip }) => plannedByEip.get(eip)).filter((one) => one !== undefined);
    if (planned.length > 0) this.#candidacy.consider(planned, nowMs);
  }

  /** Somebody asks for what this node owns: it does not know, and perhaps its kernel has answered for it until now. */
  #answerRival(from: string, wanted: readonly RequestedHolding[], nowMs: number): void {
    const { holdings } = this.#context;
    const news: Holding[] = [];
    for (const { eip, epoch } of wanted) {
      const own = holdings.get(eip);
      if (own?.state !== 'owned' || epoch > own.epoch || holdings.heldUntilMs(own, nowMs) <= nowMs) continue;
      news.push({ eip, epoch: own.epoch });
    }
    if (news.length > 0) this.#context.send(from, { kind: 'notice', sequence: 0, holdings: news });
    this.#announceOver(wanted, nowMs);
  }

  /**
   * Announces EIPs of ours of which somebody speaks with a lower epoch: a node that had them before is back, and may have answered for
   * them or has just let them go. The network would go on sending there for seconds.
   */
  #announceOver(others: readonly Holding[], nowMs: number): void {
    const { holdings, timing } = this.#context;
    for (const { eip, epoch } of others) {
      const own = holdings.get(eip);
      if (own?.state !== 'owned' || epoch >= own.epoch || holdings.heldUntilMs(own, nowMs) <= nowMs) continue;
      if (nowMs < (this.#announcedAtMs.get(eip) ?? -Infinity) + timing.defenceMs) continue;
      this.#announcedAtMs.set(eip, nowMs);
      this.#context.emit({ kind: 'announce', eip });
    }
  }

  /** A voter asks whether we still want what it has voted for. */
  reassure(from: string, doubted: readonly Holding[], nowMs: number): void {
    const { node, holdings, plan, plannedByEip } = this.#context;
    const released: Holding[] = [];
    const unknown: Holding[] = [];
    const wanted: RequestedHolding[] = [];
    for (const holding of doubted) {
      const own = holdings.get(holding.eip);
      if (!plannedByEip.has(holding.eip)) unknown.push(holding);
      else if (own?.state !== 'owned' && own?.state !== 'asking') released.push(holding);
      else if (own.state === 'owned') {
        wanted.push({ eip: own.eip, epoch: own.epoch, isOwned: holdings.heldUntilMs(own, nowMs) > nowMs });
      }
    }
    const { generation } = plan.electorate;
    const sequence = holdings.nextSequence(nowMs);
    this.#context.sendParts(from, released, (part) => ({ kind: 'release', released: part, to: undefined }));
    // The plan of others is ahead of ours: we may be about to ask for it.
    this.#context.sendParts(from, unknown, (part) => ({ kind: 'release', released: part, to: node }));
    this.#context.sendParts(from, wanted, (part) => ({ kind: 'claim', sequence, generation, wanted: part }));
  }

  /** Another node owns from now on. */
  note(from: string, { sequence, holdings: news }: Notice, nowMs: number): void {
    const { holdings, hearing, alarms } = this.#context;
    this.#context.send(from, { kind: 'noted', sequence });
    for (const { eip, epoch } of news) {
      const own = holdings.get(eip);
      if (own?.state === 'owned' && own.epoch < epoch) this.#context.letGo(own, 'later epoch', from);
      this.#context.voter.presume(eip, from, epoch);
      const known = this.#ownerByEip.get(eip);
      // No two nodes own with the same epoch: if they say so the EIP was given up and given again, and voters did not remember it.
      if (known !== undefined && (epoch < known.epoch || (epoch === known.epoch && from === known.node))) continue;
      // Not every gateway node votes.
      if (known !== undefined && known.node !== from && !hearing.isHeard(known.node, nowMs)) {
        alarms.taken(eip, known.node, nowMs);
      }
      this.#ownerByEip.set(eip, { node: from, epoch });
      this.#context.emit({ kind: 'owner', eip, epoch, node: from });
    }
  }

  /** Forgets EIPs that no longer exist: when one is given again, its epochs may begin anew. */
  keepOnly(eips: ReadonlyMap<Ip, unknown>): void {
    for (const map of [this.#ownerByEip, this.#announcedAtMs]) {
      for (const eip of [...map.keys()]) if (!eips.has(eip)) map.delete(eip);
    }
  }

  /** Another machine has our EIPs: if it is an agent's node with an earlier epoch it lets go when it hears us. */
  contest(eips: readonly Ip[]): void {
    const { holdings, members } = this.#context;
    const news: Holding[] = [];
    for (const eip of eips) {
      const own = holdings.get(eip);
      if (own?.state !== 'owned') continue;
      this.#context.emit({ kind: 'announce', eip });
      news.push({ eip, epoch: own.epoch });
    }
    for (const member of members) {
      this.#context.sendParts(member, news, (part) => ({ kind: 'notice', sequence: 0, holdings: part }));
    }
  }
}
