/**
 * Candidacy: which EIPs this node asks the voters for, and when. An EIP is asked for when its owner has let go or counts
 * as lost. Who is first follows from names and from what is heard; those behind wait, and step in if nothing happens.
 * Agreement on that order is never needed for safety, only for speed: the voters decide.
 */
import type { Ip } from '../ip/index.ts';
import { type Context, EIPS_PER_MESSAGE } from './context.ts';
import type { Own } from './holdings.ts';
import type { Holding, RequestedHolding, VoteAnswer } from './message.ts';
import type { Cause, PlannedEip } from './port.ts';
import type { Vote } from './voter.ts';

/** The time until the next try doubles this often. */
const MOST_FAILURES = 3;

/**
 * What the pause of each rank is longer than that of the one before. Not 1: the second one after its first failure would wait as long as the
 * first one after its second, and two that split the votes of two voters would ask at the same moment again and again.
 */
const RANK_SHARE = 0.75;

/** An EIP is asked for so many silences at the most: two that have half of the votes each wait for each other. */
const MOST_ASKED = 6;

/** Whether those that are asked for are due, and those that are owned without all votes. */
interface Times {
  readonly isAskingTime: boolean;
  readonly isRenewTime: boolean;
}

/** What a refusal means for what we own or ask for. A voter that needs a higher epoch votes for nobody now. */
const verdictOf = { held: 'refused', soon: 'undecided', epoch: 'refused', starting: 'abstained' } as const;

/** What a voter is asked about that is to be asked about more than it can answer at once. */
interface Crowd {
  /** EIP -> in which epoch and when it was asked about last, and whether it has answered. */
  readonly asked: Map<Ip, { readonly epoch: number; readonly atMs: number; isAnswered: boolean }>;
  /** What comes next, the first one last. */
  next: Holding[];
}

/**
 * A voter is asked about so many EIPs, which are four messages, before it has answered. A thousand that were asked about again and again fill its
 * socket; then heartbeats are lost among them, and with them more EIPs.
 */
const MOST_UNANSWERED = 4 * EIPS_PER_MESSAGE;

export class Candidacy {
  readonly #context: Context;
  readonly #crowdByVoter = new Map<string, Crowd>();
  /** Since when an EIP has no owner that counts as there. */
  readonly #openSinceMs = new Map<Ip, number>();
  /** When an EIP that could not be won may be asked for again, and how often it could not: others get their turn too. */
  readonly #retryByEip = new Map<Ip, { readonly atMs: number; readonly failures: number }>();
  /** Why an EIP is asked for, and what this node's own vote for it was before. */
  readonly #startByEip = new Map<Ip, { readonly cause: Cause; readonly before: Vote | undefined }>();
  /** EIPs that were moved here and could not be won at the first try: by whom, and until when that matters. */
  readonly #offeredBy = new Map<Ip, { readonly node: string; readonly untilMs: number }>();
  #pressAtMs = -Infinity;
  #renewAtMs = -Infinity;
  #doubtAtMs = -Infinity;

  constructor(context: Context) {
    this.#context = context;
  }

  /** The next time at which voters are to be asked again; infinite when there is nothing to ask for. */
  get pressAtMs(): number {
    for (const { state } of this.#context.holdings.all) if (state === 'asking') return this.#pressAtMs;
    return Infinity;
  }

  /** Begins to ask for those EIPs that it is our turn to take. */
  consider(planned: Iterable<PlannedEip>, nowMs: number): void {
    const { node, voter, hearing, holdings, isGateway } = this.#context;
    if (!isGateway || !this.#context.hearsEnough(nowMs)) return;
    let asked = 0;
    const slowness = this.#context.slowness(nowMs);
    const doubted = new Map<string, Holding[]>();
    for (const one of planned) {
      const { eip } = one;
      const state = holdings.get(eip)?.state;
      if (state === 'owned' || state === 'asking') continue;
      const vote = voter.voteFor(eip);
      const isTaken = vote !== undefined && !vote.isReleased && vote.node !== node;
      if (isTaken && hearing.isAlive(vote.node, nowMs)) {
        this.#openSinceMs.delete(eip);
        if (vote.isPresumed) {
          const known = doubted.get(vote.node);
          if (known === undefined) doubted.set(vote.node, [{ eip, epoch: vote.epoch }]);
          else known.push({ eip, epoch: vote.epoch });
        }
        continue;
      }
      const sinceMs = this.#openSinceMs.get(eip) ?? nowMs;
      this.#openSinceMs.set(eip, sinceMs);
      if (isTaken && !voter.isLost(eip, vote.node, nowMs)) continue;
      const rank = this.#orderFor(one, nowMs).indexOf(node);
      if (rank < 0 || nowMs < sinceMs + rank * this.#turnMs(vote) * slowness) continue;
      // The pause after asking in vain is for others to have their turn; what was handed to us is meant for nobody else.
      const isMeant = vote?.isReleased === true && vote.to === node;
      if (!isMeant && nowMs < (this.#retryByEip.get(eip)?.atMs ?? 0)) continue;
      const epoch = Math.max(one.epoch, vote?.epoch ?? 0, voter.pastEpoch(eip), holdings.usedEpoch(eip)) + 1;
      const cause = isTaken ? 'silence' : vote?.isReleased && vote.node !== node ? 'handed over' : 'start';
      this.#startByEip.set(eip, { cause, before: vote });
      // Those behind have to wait until the others were answered.
      const rounds = 1 + Math.floor(asked / (2 * MOST_UNANSWERED));
      const silences = rounds * Math.min(2 * slowness, MOST_ASKED);
      holdings.put(eip, epoch, 'asking', nowMs, nowMs + silences * this.#context.timing.silenceMs);
      asked += 1;
    }
    if (asked > 0) this.press(nowMs, true);
    if (doubted.size > 0) this.#doubt(doubted, nowMs);
  }

  /** Asks nodes that own EIPs by hearsay whether they do: two that take each other for the owner would wait for ever. */
  #doubt(doubted: ReadonlyMap<string, readonly Holding[]>, nowMs: number): void {
    if (nowMs < this.#doubtAtMs) return;
    this.#doubtAtMs = nowMs + 2 * this.#context.timing.heartbeatMs;
    for (const [holder, list] of doubted) {
      this.#context.sendParts(holder, list, (holdings) => ({ kind: 'doubt', holdings }));
    }
  }

  /** Asks voters for the votes that are missing, if it is time to. */
  press(nowMs: number, isNew = false): void {
    const { holdings, timing } = this.#context;
    if (holdings.size === 0) return;
    const isAskingTime = isNew || nowMs >= this.#pressAtMs;
    const isRenewTime = nowMs >= this.#renewAtMs;
    if (!isAskingTime && !isRenewTime) return;
    // Where messages are late and not lost, more of them make them later.
    if (isAskingTime) this.#pressAtMs = nowMs + (timing.heartbeatMs / 2) * this.#context.slowness(nowMs);
    // Each heartbeat, also when one comes a little early.
    if (isRenewTime) this.#renewAtMs = nowMs + 0.8 * timing.heartbeatMs;
    // Votes that came late, for a question of long ago, count as soon as their voters have answered anything since.
    for (const own of [...holdings.all]) {
      if (own.state === 'asking' && isAskingTime && holdings.backedUntilMs(own) > nowMs) this.#win(own, nowMs);
    }
    for (const voter of holdings.voters) this.#ask(voter, { isAskingTime, isRenewTime }, nowMs);
  }

  #ask(voter: string, { isAskingTime, isRenewTime }: Times, nowMs: number): void {
    const { node, holdings, hearing } = this.#context;
    const place = holdings.voters.indexOf(voter);
    const isHeard = hearing.isHeard(voter, nowMs);
    const wanted: Own[] = [];
    for (const own of holdings.all) {
      const isDue = own.state === 'asking' ? isAskingTime : own.state === 'owned' && isRenewTime && isHeard;
      if (isDue && holdings.lacks(own, place)) wanted.push(own);
    }
    if (wanted.length === 0) return;
    if (voter === node) {
      const claims = wanted.map((own) => this.#claimOf(own, nowMs));
      const judged = this.#context.voter.judge(node, claims, nowMs);
      this.#count(node, { ...judged, sequence: holdings.nextSequence(nowMs) }, nowMs);
    } else this.#claim(voter, this.#turnOf(voter, wanted, nowMs), nowMs);
  }

  #claimOf(own: Own, nowMs: number): RequestedHolding {
    // What we found in the kernel at the start is ours only when voters say so.
    const isOwned = own.state === 'owned' && this.#context.holdings.heldUntilMs(own, nowMs) > nowMs;
    return { eip: own.eip, epoch: own.epoch, isOwned };
  }

  #claim(voter: string, owns: readonly Own[], nowMs: number): void {
    if (owns.length === 0) return;
    const { holdings, plan } = this.#context;
    const sequence = holdings.nextSequence(nowMs);
    const { generation } = plan.electorate;
    const wanted = owns.map((own) => this.#claimOf(own, nowMs));
    this.#context.sendParts(voter, wanted, (part) => ({ kind: 'claim', sequence, generation, wanted: part }));
  }

  /** What a voter is asked about now: all, or as much as it has not been asked about in the last moment, and can answer. */
  #turnOf(voter: string, wanted: readonly Own[], nowMs: number): readonly Own[] {
    if (wanted.length <= MOST_UNANSWERED) {
      this.#crowdByVoter.delete(voter);
      return wanted;
    }
    const crowd = this.#crowdByVoter.get(voter) ?? { asked: new Map(), next: [] };
    this.#crowdByVoter.set(voter, crowd);
    const sinceMs = nowMs - 2 * this.#context.timing.heartbeatMs;
    const fresh: Own[] = [];
    const again: Own[] = [];
    let unanswered = 0;
    for (const own of wanted) {
      const last = crowd.asked.get(own.eip);
      if (last?.epoch !== own.epoch) fresh.push(own);
      else if (last.atMs <= sinceMs) again.push(own);
      else if (!last.isAnswered) unanswered += 1;
    }
    const all = [...fresh, ...again];
    const turn = all.slice(0, Math.max(0, MOST_UNANSWERED - unanswered));
    crowd.next = all.slice(turn.length).reverse();
    for (const { eip, epoch } of turn) crowd.asked.set(eip, { epoch, atMs: nowMs, isAnswered: false });
    return turn;
  }

  /** A voter has answered, and is asked about as many of those that wait. */
  #askOn(voter: string, said: readonly Holding[], nowMs: number): void {
    const { holdings } = this.#context;
    const crowd = this.#crowdByVoter.get(voter);
    const place = holdings.voters.indexOf(voter);
    if (crowd === undefined || place < 0) return;
    for (const { eip } of said) {
      const last = crowd.asked.get(eip);
      if (last !== undefined) last.isAnswered = true;
    }
    const turn: Own[] = [];
    for (let next = crowd.next.pop(); next !== undefined; next = crowd.next.pop()) {
      const own = holdings.get(next.eip);
      const isOurs = own?.state === 'asking' || own?.state === 'owned';
      if (own?.epoch !== next.epoch || !isOurs || !holdings.lacks(own, place)) continue;
      crowd.asked.set(own.eip, { epoch: own.epoch, atMs: nowMs, isAnswered: false });
      turn.push(own);
      if (turn.length >= said.length) break;
    }
    this.#claim(voter, turn, nowMs);
  }

  /** A voter has started anew: it is asked at once. */
  renew(nowMs: number): void {
    this.#renewAtMs = nowMs;
    this.press(nowMs);
  }

  /** A voter has answered. */
  answered(voter: string, { sequence, losses, granted, refused }: VoteAnswer, nowMs: number): void {
    const { holdings } = this.#context;
    const isWanted = ({ eip, epoch }: Holding): boolean => {
      const own = holdings.get(eip);
      return own !== undefined && own.epoch >= epoch && (own.state === 'asking' || own.state === 'owned');
    };
    const unwanted = granted.filter((holding) => !isWanted(holding));
    if (unwanted.length > 0) {
      this.#context.sendParts(voter, unwanted, (released) => ({ kind: 'release', released, to: undefined }));
    }
    if (holdings.answered(voter, sequence, losses)) this.#count(voter, { sequence, granted, refused }, nowMs);
    this.#askOn(voter, [...granted, ...refused], nowMs);
  }

  /** The vote of the API server has come: it may have been the one that was missing. */
  recount(nowMs: number): void {
    const { holdings } = this.#context;
    let isRaised = false;
    for (const own of [...holdings.all]) {
      if (own.state !== 'asking') continue;
      if (holdings.backedUntilMs(own) > nowMs) this.#win(own, nowMs);
      else if (own.epoch < holdings.tieEpoch && nowMs < holdings.tieUntilMs) {
        holdings.put(own.eip, holdings.tieEpoch, 'asking', nowMs, own.untilMs);
        isRaised = true;
      }
    }
    if (isRaised) this.press(nowMs, true);
  }

  /** Somebody else asks for an EIP that we ask for as well: whoever is behind gives way, or nobody gets a majority. */
  giveWay(rival: string, wanted: readonly RequestedHolding[], nowMs: number): void {
    const { node, holdings, plannedByEip } = this.#context;
    for (const { eip, epoch } of wanted) {
      const own = holdings.get(eip);
      const planned = plannedByEip.get(eip);
      // With an earlier epoch it does not get what we have asked for: it wrote before it heard of us.
      if (own?.state !== 'asking' || planned === undefined || epoch < own.epoch) continue;
      const order = this.#orderFor(planned, nowMs);
      const place = order.indexOf(rival);
      if (place >= 0 && place < order.indexOf(node)) this.withdraw(own, nowMs);
    }
  }

  /** Stops asking, and gives the votes back that we got. */
  withdraw({ eip, epoch, keeps, other }: Own, nowMs: number): void {
    const { node, timing, holdings, plannedByEip } = this.#context;
    const planned = plannedByEip.get(eip);
    const rank = planned === undefined ? 0 : Math.max(0, planned.candidates.indexOf(node));
    const failures = Math.min((this.#retryByEip.get(eip)?.failures ?? 0) + 1, MOST_FAILURES);
    const atMs = nowMs + 2 * timing.heartbeatMs * (1 + RANK_SHARE * rank) * 2 ** failures;
    this.#retryByEip.set(eip, { atMs, failures });
    // It still carries the EIP when we get it at the next try.
    if (keeps === 'prepared' && other) this.#offeredBy.set(eip, { ...other, untilMs: nowMs + 4 * timing.silenceMs });
    holdings.drop(eip);
    if (keeps !== undefined) this.#context.hasChanged = true;
    this.#context.release([{ eip, epoch }], undefined);
    // Else we would ask again and again, and be in the middle of a pause when its owner is lost.
    const before = this.#startByEip.get(eip)?.before;
    const [owner] = planned?.candidates ?? [];
    if (before !== undefined && !before.isReleased && before.node !== node) this.#context.voter.restore(eip, before);
    else if (owner !== undefined && owner !== node) this.#context.voter.defer(eip, owner);
  }

  /** Forgets EIPs that no longer exist. */
  keepOnly(eips: ReadonlyMap<Ip, PlannedEip>): void {
    for (const map of [this.#openSinceMs, this.#retryByEip, this.#startByEip, this.#offeredBy]) {
      for (const eip of [...map.keys()]) if (!eips.has(eip)) map.delete(eip);
    }
  }

  /**
   * Who may take an open EIP, the first one first: whom it was handed to, or else its last owner, so that an EIP does not
   * move without need; then by plan. Nodes that are not heard are left out, and those from which fewer of its addresses reach
   * the outside than from others; if no node reaches it, that is not held against any of them.
   */
  #orderFor(planned: PlannedEip, nowMs: number): readonly string[] {
    const { eip, candidates } = planned;
    const { voter, hearing } = this.#context;
    const vote = voter.voteFor(eip);
    const first = vote?.isReleased ? (vote.to ?? vote.node) : undefined;
    const isFirstNamed = first !== undefined && candidates.includes(first);
    const order = isFirstNamed ? [first, ...candidates.filter((name) => name !== first)] : candidates;
    const heard = order.filter((name) => hearing.isHeard(name, nowMs));
    const losses = heard.map((name) => this.#context.reachOf(name).lossOf(planned));
    const least = Math.min(...losses);
    return heard.filter((_, place) => losses[place] === least);
  }

  /** How long each in the order has before the next one steps in. One that only does not know of the EIP yet reads the API later than others. */
  #turnMs(vote: Vote | undefined): number {
    const { silenceMs, newTurnMs } = this.#context.timing;
    return vote?.isReleased && vote.to === vote.node ? newTurnMs : silenceMs;
  }

  #count(voter: string, { sequence, granted, refused }: Omit<VoteAnswer, 'kind' | 'losses'>, nowMs: number): void {
    const { holdings } = this.#context;
    for (const { eip, epoch } of granted) {
      const own = holdings.get(eip);
      if (own === undefined || own.epoch !== epoch) continue;
      holdings.count(voter, sequence, own, 'granted');
      if (own.state === 'asking' && holdings.backedUntilMs(own) > nowMs) this.#win(own, nowMs);
    }
    let isRaised = false;
    for (const { eip, epoch, why } of refused) {
      holdings.noteEpoch(eip, epoch);
      const own = holdings.get(eip);
      if (own === undefined || (own.state !== 'asking' && own.state !== 'owned')) continue;
      if (own.state === 'asking' && why === 'epoch' && epoch >= own.epoch) {
        holdings.put(eip, epoch + 1, 'asking', nowMs, own.untilMs);
        isRaised = true;
      } else holdings.count(voter, sequence, own, verdictOf[why]);
    }
    // Not while we ask the voters one by one: then the rest of them is asked with the new epoch anyway.
    if (isRaised && voter !== this.#context.node) this.press(nowMs, true);
  }

  #win(own: Own, nowMs: number): void {
    const { eip, epoch } = own;
    const start = this.#startByEip.get(eip);
    own.state = 'owned';
    own.backedAtMs = nowMs;
    own.untilMs = -Infinity;
    // Who has carried it on until now, and gets it back, knows of no other who has connections.
    const other = own.keeps === 'prepared' ? own.other : this.#offeredBy.get(eip);
    const isFresh = other !== undefined && nowMs < other.untilMs;
    own.other = isFresh ? { node: other.node, untilMs: nowMs + this.#context.timing.handBackMs } : undefined;
    this.#offeredBy.delete(eip);
    this.#openSinceMs.delete(eip);
    this.#retryByEip.delete(eip);
    this.#context.hasChanged = true;
    const cause = start?.cause ?? 'start';
    this.#context.emit({ kind: 'event', reason: 'EipTakenOver', cause, eip, epoch, other: start?.before?.node });
  }
}
