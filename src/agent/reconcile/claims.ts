/**
 * EipClaims asks the network about an EIP before the node takes it: an address that another machine answers for is not
 * claimed, and no packet leaves with it. The first packets of a policy wait for the answer, so it has to come soon; for a
 * machine that is too busy for that, the question is repeated after the claim. Nothing is asked about an EIP that the
 * kernel of this node holds already (a restart), or that another node reports to hold (a move).
 */
import { isDeepStrictEqual } from 'node:util';
import { type Finding, finding } from '../../core/cluster/finding.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { Claim, NodeDesired } from '../../core/node/desired.ts';
import type { NodeInput } from '../../core/node/input.ts';
import type { AddressHolder, Announcer } from '../../dataplane/announce/announcer.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Tasks } from '../../runtime/process/tasks.ts';

/** Told about what was found. */
export interface ClaimHooks {
  /** Another machine answers for an EIP that the node is to own. */
  conflict(ip: Ip, found: Finding): void;
}

/** What claims need. */
export interface EipClaimsDeps {
  readonly node: string;
  readonly announcer: Pick<Announcer, 'probe'>;
  readonly clock: Clock;
  readonly spawn: Tasks['spawn'];
  /** Whether nodes agree that this one has the EIP, and it answers for it: then no other node of ours does. */
  readonly isOpen: (ip: Ip) => boolean;
  /** Called when `unclaimable` has changed by an answer of the network, or by its silence. */
  readonly onChange: () => void;
  readonly hooks: ClaimHooks;
}

/** How long another machine has to answer. Part of the time until the first packet of a new policy. */
const answerMs = 25;
/** The same where nobody waits for it. */
const patientMs = 200;
/** After a claim, how long until the network is asked again, each time. Further apart than a node carries on what it has lost. */
const pausesMs = [1_000, 3_000, 6_000] as const;
/** An EIP that is in use elsewhere is asked for again after this long. */
const againMs = 30_000;

/** What is known about an EIP that the node is to own. */
interface ClaimState {
  readonly claim: Claim;
  readonly state: 'free' | 'probing' | Finding;
  /** Ends the question that is under way, or the wait for the next one. */
  readonly cancel: () => void;
  /** The end of the first question; undefined when it is over. */
  readonly answered?: Promise<void>;
}

/** The EIPs that a node has to do with. */
type DesiredClaims = Pick<NodeDesired, 'claims' | 'expected' | 'standbys' | 'unclaimed'>;

/** The EIPs that the node is to own, and which of them it may not claim. */
export class EipClaims {
  readonly #deps: EipClaimsDeps;
  readonly #knownByIp = new Map<Ip, ClaimState>();
  #held: ReadonlySet<Ip>;
  #unclaimable: NodeInput['unclaimable'] = new Map();

  /** `held` are the EIPs that the kernel holds when the agent starts. */
  constructor(deps: EipClaimsDeps, held: ReadonlySet<Ip>) {
    this.#deps = deps;
    this.#held = held;
  }

  /** For the NodeInput. The same value until something in it changes. */
  get unclaimable(): NodeInput['unclaimable'] {
    return this.#unclaimable;
  }

  /**
   * Looks at what was decided: begins to ask about new EIPs and forgets those that are no longer wanted. Returns true
   * when `unclaimable` is another one now, so that the decision has to be made again.
   */
  judge(desired: DesiredClaims, tunnels: NodeInput['tunnels']): boolean {
    const { claims, expected, standbys, unclaimed } = desired;
    const ours = [...claims, ...expected, ...unclaimed];
    const wanted = new Map([...ours, ...standbys].map((claim) => [claim.ip, claim]));
    for (const ip of [...this.#knownByIp.keys()]) if (!wanted.has(ip)) this.#forget(ip);
    // An EIP that another node has got since is no conflict any more; if it comes here, that node has let it go.
    for (const { ip } of standbys) {
      const known = this.#knownByIp.get(ip);
      if (known !== undefined && known.cancel !== nothing) this.#forget(ip);
    }
    const unknown = [...wanted.values()].filter(({ ip }) => !this.#knownByIp.has(ip));
    if (unknown.length > 0) {
      // Nobody asks about an EIP of another node that lies ready here: that node has asked.
      const taken = this.#heldIn(tunnels).union(new Set(standbys.map(({ ip }) => ip)));
      for (const claim of unknown) {
        if (taken.has(claim.ip)) this.#knownByIp.set(claim.ip, { claim, state: 'free', cancel: nothing });
        else this.#probe(claim, 'probing');
      }
    }
    // Only the first look is about what the kernel held before: an EIP that leaves and returns is asked for again.
    this.#held = new Set();
    return this.#publish();
  }

  /**
   * Begins to ask about an EIP that is about to be decided on, because the answer takes as long as a decision. Nothing else
   * comes of it: one that is not wanted then is forgotten by `judge`.
   */
  foresee(ip: Ip, interfacesOf: (ip: Ip) => readonly string[], tunnels: NodeInput['tunnels']): void {
    if (this.#knownByIp.has(ip) || this.#heldIn(tunnels).has(ip)) return;
    this.#probe({ ip, interfaces: interfacesOf(ip) }, 'probing');
    this.#publish();
  }

  /** EIPs that the kernel of this node held when the agent started, or that other nodes report: they are ours. */
  #heldIn(tunnels: NodeInput['tunnels']): ReadonlySet<Ip> {
    const others = tunnels.filter(({ node }) => node !== this.#deps.node);
    return new Set([...this.#held, ...others.flatMap(({ held }) => held.map(({ ip }) => ip))]);
  }

  /** Resolves when no EIP is asked about for the first time any more: at the latest after the time to answer. Then onChange was called. */
  async settled(): Promise<void> {
    await Promise.all([...this.#knownByIp.values()].map(({ answered }) => answered));
  }

  /** Asks nothing more. */
  close(): void {
    for (const ip of [...this.#knownByIp.keys()]) this.#forget(ip);
  }

  #forget(ip: Ip): void {
    this.#knownByIp.get(ip)?.cancel();
    this.#knownByIp.delete(ip);
  }

  /** Asks whether an EIP may be claimed. */
  #probe(claim: Claim, state: 'probing' | Finding): void {
    this.#ask(claim, state, state === 'probing' ? answerMs : patientMs, (answer) => {
      if (answer === undefined) this.#free(claim, 0);
      else this.#refuse(claim, answer);
    });
  }

  /** Asks the network; until it has answered, or had its time, the EIP stays in the given state. */
  #ask(
    claim: Claim,
    state: ClaimState['state'],
    waitMs: number,
    hear: (answer: AddressHolder | undefined) => void,
  ): void {
    const { announcer, spawn, onChange } = this.#deps;
    const stop = new AbortController();
    const answered = announcer.probe(claim, waitMs).then((answer) => {
      if (stop.signal.aborted) return;
      hear(answer);
      if (this.#knownByIp.get(claim.ip)?.state !== state && this.#publish()) onChange();
    });
    spawn(`probe ${claim.ip}`, answered);
    const known = { claim, state, cancel: () => stop.abort() };
    this.#knownByIp.set(claim.ip, state === 'probing' ? { ...known, answered } : known);
  }

  /** The EIP may be claimed; it is asked about again after a pause. `rival` is who answered since it was claimed. */
  #free(claim: Claim, round: number, rival?: string): void {
    const pauseMs = pausesMs[round];
    const again = () => this.#askAgain(claim, round, rival);
    const cancel = pauseMs === undefined ? nothing : this.#deps.clock.after(pauseMs, again);
    this.#knownByIp.set(claim.ip, { claim, state: 'free', cancel });
  }

  /**
   * Asks about an EIP that was claimed. One answer proves nothing: when the EIP has just moved it may be that of a node of
   * ours. The same machine twice, while this node has the EIP, is none of ours.
   */
  #askAgain(claim: Claim, round: number, rival: string | undefined): void {
    const { isOpen } = this.#deps;
    if (!isOpen(claim.ip)) {
      this.#free(claim, round + 1);
      return;
    }
    this.#ask(claim, 'free', patientMs, (answer) => {
      if (!isOpen(claim.ip)) this.#free(claim, round + 1);
      else if (answer === undefined || answer.mac !== rival) this.#free(claim, round + 1, answer?.mac ?? rival);
      else this.#refuse(claim, answer);
    });
  }

  #refuse(claim: Claim, answer: AddressHolder): void {
    const { node, clock, hooks } = this.#deps;
    const what = `${claim.ip} is in use by ${answer.mac}, which node ${node} sees on ${answer.interface}.`;
    const found = finding('EipInUse', what);
    hooks.conflict(claim.ip, found);
    const cancel = clock.after(againMs, () => this.#probe(claim, found));
    this.#knownByIp.set(claim.ip, { claim, state: found, cancel });
  }

  /** Makes `unclaimable` anew; true when it says something else than before. */
  #publish(): boolean {
    const next = new Map<Ip, Finding | 'probing'>();
    for (const [ip, { state }] of this.#knownByIp) if (state !== 'free') next.set(ip, state);
    if (isDeepStrictEqual(next, this.#unclaimable)) return false;
    this.#unclaimable = next;
    return true;
  }
}

const nothing = (): void => {};
