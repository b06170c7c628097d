/**
 * Ownership is the protocol that decides which gateway node owns which EIP, as a state machine of one node: something
 * happens at a time, and it says what is to be done. It reads no clock and touches nothing. README.md has the rules and
 * why they are safe; `step` is the one way in.
 */
import { Candidacy } from './candidacy.ts';
import { Context } from './context.ts';
import { FalseAlarms } from './false-alarms.ts';
import { Handover } from './handover.ts';
import { Hearing } from './hearing.ts';
import { Holdings } from './holdings.ts';
import type { Holding, Message } from './message.ts';
import { Notices } from './notices.ts';
import type { Effect, Input, OwnershipPlan } from './port.ts';
import { NetworkReach } from './reach.ts';
import { Replies } from './replies.ts';
import { isTooLate, type Passed } from './standstill.ts';
import type { Timing } from './timing.ts';
import { Voter } from './voter.ts';

export interface OwnershipSettings {
  readonly node: string;
  readonly timing: Timing;
  /** EIPs that the kernel holds when the agent starts, with their epochs. They are kept while the voters are asked. */
  readonly held: readonly Holding[];
  /** Until when others may rely on what an earlier run of this node has promised. */
  readonly promisedUntilMs: number;
  readonly nowMs: number;
}

export class Ownership {
  readonly #context: Context;
  readonly #candidacy: Candidacy;
  readonly #handover: Handover;
  readonly #notices: Notices;
  readonly #replies: Replies;
  #nextBeatMs: number;
  #nextEchoMs = Infinity;
  #nextRenewMs: number;
  #wakeAtMs: number;
  #steppedAtMs: number;
  #toldSilenceMs: number;
  #isTieWanted = false;
  #tieEpoch = 0;
  /** After we were held up nobody counts as overdue; until then all kernels are asked. */
  #asksAllUntilMs = -Infinity;

  constructor({ node, timing, held, promisedUntilMs, nowMs }: OwnershipSettings) {
    const hearing = new Hearing(node, timing);
    const alarms = new FalseAlarms(timing);
    // Votes of an earlier run last for what it promised, and for a silence at the least; that run ended before now.
    const voter = new Voter(hearing, alarms, Math.max(promisedUntilMs, nowMs + timing.silenceMs));
    const holdings = new Holdings(node, timing, hearing);
    for (const { eip, epoch } of held) {
      holdings.put(eip, epoch, 'owned', nowMs, nowMs + timing.foundMs);
      voter.presume(eip, node, epoch);
    }
    this.#context = new Context(node, timing, { hearing, alarms, voter, holdings });
    this.#candidacy = new Candidacy(this.#context);
    this.#handover = new Handover(this.#context);
    this.#notices = new Notices(this.#context);
    this.#replies = new Replies(this.#context, this.#candidacy);
    this.#nextBeatMs = nowMs;
    this.#nextRenewMs = nowMs;
    this.#wakeAtMs = nowMs;
    this.#steppedAtMs = nowMs;
    this.#toldSilenceMs = timing.silenceMs;
  }

  /** When to call `step` with a wake, if nothing happens before. */
  get wakeAtMs(): number {
    return this.#wakeAtMs;
  }

  /** What this node answers for. */
  get owned(): readonly Holding[] {
    return this.#context.holdings.held().filter(({ mode }) => mode === 'owned');
  }

  /** Until when others may rely on what this node has promised as a voter. */
  get promisedUntilMs(): number {
    return this.#context.hearing.grantedUntilMs;
  }

  /** Whether this state is to be replaced by a new one that holds nothing, before anything else is done. */
  isStale(passed: Passed): boolean {
    return isTooLate(passed, this.#steppedAtMs, this.#context.timing);
  }

  /** Takes in what happened and says what to do, in this order. */
  step(input: Input, nowMs: number): readonly Effect[] {
    const context = this.#context;
    this.#steppedAtMs = nowMs;
    const lateMs = nowMs - this.#wakeAtMs;
    if (lateMs > context.timing.lateMs) this.#excuse(lateMs, nowMs);
    this.#take(input, nowMs);
    if (context.hasChanged) {
      context.emit({ kind: 'hold', held: context.holdings.held() });
      this.#notices.pass(true, nowMs);
      context.hasChanged = false;
    }
    context.sendReleases();
    if (context.effects.length === 0) return nothing;
    const { effects } = context;
    context.effects = [];
    return effects;
  }

  #take(input: Input, nowMs: number): void {
    const context = this.#context;
    switch (input.kind) {
      case 'wake':
        this.#wake(nowMs);
        break;
      case 'message':
        this.#hear(input.from, input.incarnation, input.message, nowMs);
        break;
      case 'echoed':
        context.hearing.hearKernel(input.node, nowMs);
        context.holdings.echoed(input.node, input.sequence);
        break;
      case 'plan':
        this.#follow(input.plan, nowMs);
        break;
      case 'uplink':
        this.#seeOutside(new NetworkReach(input.unreached), nowMs);
        this.#nextBeatMs = nowMs;
        this.#wake(nowMs);
        break;
      case 'tie':
        context.holdings.tieUntilMs = input.untilMs ?? -Infinity;
        context.holdings.tieEpoch = input.epoch;
        this.#candidacy.recount(nowMs);
        this.#wake(nowMs);
        break;
      case 'prepared':
        this.#handover.prepared(input.eips);
        break;
      case 'conflict':
        this.#replies.contest(input.eips);
        break;
      default:
        input satisfies never;
    }
  }

  /**
   * This node was held up, by its scheduler or by a stop: messages that came meanwhile are not read yet, so nobody counts as
   * silent for that time, and what was owned when it began is held longer: those who were held up as well need a while to answer.
   * Once only until its time is renewed by voters. If this node is held up again before, it merely loses nothing of that time, and
   * that up to a silence in all: a node that is always late, because its processors are busy, would else never let go.
   */
  #excuse(lateMs: number, nowMs: number): void {
    const { hearing, holdings, timing } = this.#context;
    const sinceMs = this.#wakeAtMs;
    const freshMs = Math.min(2 * lateMs, timing.extensionMs);
    for (const own of holdings.all) {
      if (own.state !== 'owned' || Math.max(own.untilMs, holdings.heldUntilMs(own, sinceMs)) < sinceMs) continue;
      const leftMs = Math.max(0, own.untilMs - sinceMs);
      if (own.excuseMs === undefined) {
        own.untilMs = nowMs + Math.max(leftMs, freshMs);
        own.excuseMs = timing.extensionMs;
      } else {
        const againMs = Math.min(lateMs, own.excuseMs);
        own.untilMs = sinceMs + leftMs + againMs;
        own.excuseMs -= againMs;
      }
    }
    hearing.forgive(lateMs, nowMs);
    this.#nextBeatMs = nowMs;
    this.#wakeAtMs = nowMs;
    this.#asksAllUntilMs = nowMs + freshMs;
  }

  #seeOutside(reach: NetworkReach, nowMs: number): void {
    const context = this.#context;
    if (reach.hasLostMoreThan(context.reach)) context.lostAtMs = nowMs;
    context.reach = reach;
  }

  #wake(nowMs: number): void {
    const { plan, timing } = this.#context;
    if (nowMs >= this.#nextBeatMs) {
      this.#beat(nowMs);
      this.#nextEchoMs = nowMs;
      this.#nextBeatMs = this.#isBystander
        ? nowMs + timing.renewMs
        : Math.max(this.#nextBeatMs + timing.heartbeatMs, nowMs + timing.heartbeatMs / 2);
    }
    if (nowMs >= this.#nextEchoMs) this.#askKernels(nowMs);
    this.#expire(nowMs);
    this.#handover.pass(nowMs);
    this.#candidacy.consider(plan.eips, nowMs);
    this.#candidacy.press(nowMs);
    this.#notices.pass(false, nowMs);
    this.#wantTie(nowMs);
    this.#tellSilence(nowMs);
    this.#sleep(nowMs);
  }

  /** What is slowed by short processors is told to people. */
  #tellSilence(nowMs: number): void {
    const silenceMs = this.#context.hearing.longestSilence(this.#context.members, nowMs);
    if (silenceMs === this.#toldSilenceMs) return;
    this.#toldSilenceMs = silenceMs;
    const { silenceMs: usualMs, widestMs } = this.#context.timing;
    this.#context.emit({ kind: 'silence', silenceMs, usualMs, widestMs });
  }

  /** Most nodes of a large cluster only want to hear who owns: they have no heartbeat to send and nothing to watch. */
  get #isBystander(): boolean {
    const { isGateway, plan, holdings } = this.#context;
    return !isGateway && plan.eips.length === 0 && holdings.size === 0;
  }

  #beat(nowMs: number): void {
    const { holdings, members, isGateway, reach } = this.#context;
    if (isGateway) {
      const beat: Message = { kind: 'beat', sequence: holdings.nextSequence(nowMs), unreached: reach.unreached };
      for (const member of members) this.#context.send(member, beat);
    }
    if (nowMs >= this.#nextRenewMs && holdings.size > 0 && holdings.areConfirmed(nowMs)) {
      this.#nextRenewMs = nowMs + this.#context.timing.renewMs;
      this.#context.emit({ kind: 'renew' });
    }
  }

  /**
   * Asks kernels: those of owners that are overdue, before their EIPs are given away, and those of voters that have not
   * answered the last heartbeat, before ours are let go. Twice in a heartbeat, as one echo proves little.
   */
  #askKernels(nowMs: number): void {
    const { node, holdings, hearing, voter, timing } = this.#context;
    // Who only hears who owns has no vote to give away: it would knock at every owner of a large cluster for nothing.
    if (this.#isBystander) {
      this.#nextEchoMs = Infinity;
      return;
    }
    const asked: string[] = [];
    for (const holder of voter.holders) if (hearing.isOverdue(holder, nowMs)) asked.push(holder);
    if (holdings.size > 0) {
      for (const other of holdings.voters) {
        const isUnsure = nowMs < this.#asksAllUntilMs || holdings.isUnanswered(other, nowMs);
        if (isUnsure && hearing.hasGrace(other, nowMs) && !asked.includes(other)) asked.push(other);
      }
    }
    for (const other of asked) {
      if (other === node) continue;
      this.#context.emit({ kind: 'echo', node: other, sequence: holdings.nextSequence(nowMs) });
    }
    this.#nextEchoMs = asked.length > 0 ? nowMs + timing.heartbeatMs / 2 : Infinity;
  }

  /** Lets go of what is no longer backed, and gives up what did not come. */
  #expire(nowMs: number): void {
    const { holdings } = this.#context;
    if (holdings.size === 0) return;
    for (const own of [...holdings.all]) {
      if (own.state === 'owned') {
        if (own.other !== undefined && own.other.untilMs <= nowMs) {
          own.other = undefined;
          this.#context.hasChanged = true;
        }
        if (holdings.backedUntilMs(own) > nowMs) {
          own.backedAtMs = nowMs;
          own.excuseMs = undefined;
        } else {
          const heldUntilMs = holdings.heldUntilMs(own, nowMs);
          if (holdings.isHopeless(own) || Math.max(own.untilMs, heldUntilMs) <= nowMs) {
            this.#context.letGo(own, 'voters lost', undefined);
          } else if (heldUntilMs > nowMs) own.excuseMs = undefined;
        }
      } else if (own.state === 'asking') {
        if (own.untilMs <= nowMs || holdings.isHopeless(own)) this.#candidacy.withdraw(own, nowMs);
      } else if (own.untilMs <= nowMs) {
        holdings.drop(own.eip);
        this.#context.hasChanged = true;
      }
    }
    this.#handover.tidy();
  }

  /** The lease of the API server is wanted while the votes of nodes are not enough for what we own or ask for. */
  #wantTie(nowMs: number): void {
    const { holdings, plan, timing } = this.#context;
    const soonMs = nowMs + 2 * timing.heartbeatMs;
    let epoch = 0;
    if (plan.electorate.hasApi) {
      for (const own of holdings.all) {
        const isOurs = own.state === 'owned' || own.state === 'asking';
        if (isOurs && holdings.backedUntilMs(own, false) <= soonMs) epoch = Math.max(epoch, own.epoch);
      }
    }
    const isWanted = epoch > 0;
    if (isWanted === this.#isTieWanted && epoch <= Math.max(this.#tieEpoch, holdings.tieEpoch)) return;
    this.#isTieWanted = isWanted;
    this.#tieEpoch = epoch;
    this.#context.emit({ kind: 'tie', isWanted, epoch });
  }

  #sleep(nowMs: number): void {
    const { holdings, hearing, voter } = this.#context;
    let wakeAtMs = Math.min(this.#nextBeatMs, this.#nextEchoMs, this.#candidacy.pressAtMs, this.#notices.nextAtMs);
    const considerTime = (timeMs: number): void => {
      if (timeMs > nowMs && timeMs < wakeAtMs) wakeAtMs = timeMs;
    };
    for (const own of holdings.all) {
      if (own.state === 'owned') considerTime(Math.max(own.untilMs, holdings.heldUntilMs(own, nowMs)));
    }
    for (const holder of voter.holders) considerTime(hearing.aliveUntilMs(holder));
    // What is overdue is due now: with a time that is past each message would be late by it anew, and be excused for it again.
    this.#wakeAtMs = Math.max(wakeAtMs, nowMs);
  }

  #hear(from: string, incarnation: number, message: Message, nowMs: number): void {
    const context = this.#context;
    const isRegular = message.kind === 'beat' || message.kind === 'ack';
    if (!context.hearing.hear(from, incarnation, isRegular, nowMs)) context.alarms.heard(from, nowMs);
    else {
      context.holdings.forgetVoter(from, nowMs);
      this.#candidacy.renew(nowMs);
      this.#notices.started(from, nowMs);
    }
    switch (message.kind) {
      case 'beat':
        this.#replies.acknowledge(from, message, nowMs);
        break;
      case 'ack':
        context.holdings.answered(from, message.sequence, message.losses, message.promisedMs);
        break;
      case 'claim':
        this.#replies.judge(from, message, nowMs);
        break;
      case 'answer':
        this.#candidacy.answered(from, message, nowMs);
        this.#sleep(nowMs);
        break;
      case 'release':
        this.#replies.free(from, message, nowMs);
        this.#sleep(nowMs);
        break;
      case 'doubt':
        this.#replies.reassure(from, message.holdings, nowMs);
        break;
      case 'offer':
        this.#handover.offered(from, message.holdings, nowMs);
        break;
      case 'ready':
        this.#handover.ready(from, message.holdings, nowMs);
        break;
      case 'notice':
        this.#replies.note(from, message, nowMs);
        break;
      case 'noted':
        this.#notices.noted(from, message.sequence);
        break;
      default:
        message satisfies never;
    }
  }

  #follow(plan: OwnershipPlan, nowMs: number): void {
    const context = this.#context;
    const { voter, hearing, holdings } = context;
    const { generation } = context.plan.electorate;
    // Before the first plan there are no voters whose word could hold.
    const isOtherElectorate = generation > 0 && plan.electorate.generation !== generation;
    if (isOtherElectorate && Math.abs(plan.electorate.generation - generation) === 1) holdings.keepPromises(nowMs);
    const before = context.plannedByEip;
    context.setPlan(plan);
    holdings.setElectorate(plan.electorate);
    voter.keepOnly(context.plannedByEip, nowMs);
    this.#candidacy.keepOnly(context.plannedByEip);
    context.alarms.keepOnly(context.plannedByEip);
    this.#replies.keepOnly(context.plannedByEip);
    for (const member of context.members) hearing.presume(member, nowMs);
    for (const { eip, epoch, candidates } of plan.eips) {
      const [owner] = candidates;
      if (owner === undefined) continue;
      if (!before.has(eip)) voter.begin(eip);
      // Whom the API names may hold it with an agent that is down: its kernel is asked before anybody takes it.
      hearing.presume(owner, nowMs);
      voter.presume(eip, owner, epoch);
    }
    for (const own of [...holdings.all]) {
      if (context.plannedByEip.has(own.eip)) continue;
      if (own.state === 'owned') context.letGo(own, 'plan', undefined);
      else holdings.drop(own.eip);
      context.hasChanged = true;
    }
    this.#nextBeatMs = Math.min(this.#nextBeatMs, nowMs + context.timing.heartbeatMs);
    // New voters are asked before what the old ones have promised runs out.
    if (isOtherElectorate) this.#candidacy.renew(nowMs);
    this.#wake(nowMs);
  }
}

const nothing: readonly Effect[] = [];
