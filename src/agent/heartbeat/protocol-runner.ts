/**
 * ProtocolRunner runs the ownership protocol of this node: it gives it packets, answers of kernels and the time, and does what it
 * says. One timer, for whatever comes next. What is not for the network is told to whoever made the driver.
 */

import type { Ip } from '../../core/ip/index.ts';
import type { Holding, VoteRequest } from '../../core/ownership/message.ts';
import { Ownership } from '../../core/ownership/ownership.ts';
import type { Effect, Input } from '../../core/ownership/port.ts';
import type { Timing } from '../../core/ownership/timing.ts';
import type { MachineClock } from '../thread/machine-clock.ts';
import type { HeartbeatSeal } from './seal.ts';

type ProtocolEvent = Extract<Effect, { readonly kind: 'event' }>;

/** What is told: everything but what goes to other nodes. */
export type ProtocolOutput =
  | Exclude<Effect, ProtocolEvent | { readonly kind: 'send' | 'echo' }>
  | (ProtocolEvent & { readonly took: Took | undefined });

/** How long a take-over took: from the last word of the owner before to the first claim, and from there to the majority. */
export interface Took {
  readonly detectionMs: number;
  readonly claimMs: number;
}

export interface ProtocolRunnerDeps {
  readonly node: string;
  readonly timing: Timing;
  /** What the kernel holds when the agent starts. */
  readonly held: readonly Holding[];
  /** Until when others may rely on what earlier runs of this agent have promised as voters. */
  readonly promisedUntilMs: number;
  /** Until when the kernel holds what it was told to; infinite when that is nothing. */
  readonly heldUntilMs: () => number;
  readonly clock: MachineClock;
  /** Makes the seal of a run: it opens no packet that was sealed for an earlier one. */
  readonly createSeal: () => HeartbeatSeal;
  /** Sends a packet to the tunnel address of a node. What cannot be sent is lost, as on the way. */
  readonly send: (address: string, packet: Uint8Array) => void;
  /** Asks the kernel at an address; calls back if and when it answers. */
  readonly askKernel: (address: string, onAnswer: () => void) => void;
  readonly tell: (told: ProtocolOutput) => void;
}

/** Counts of packets that were not read, by reason. */
export type Refusals = Readonly<Record<'malformed' | 'forged' | 'replayed' | 'stranger', number>>;

export class ProtocolRunner {
  readonly refusals = { malformed: 0, forged: 0, replayed: 0, stranger: 0 } satisfies Refusals;
  readonly #deps: ProtocolRunnerDeps;
  #seal: HeartbeatSeal;
  /** Undefined until there is a plan: without voters an owner would let go what the kernel holds. */
  #ownership: Ownership | undefined;
  /** What a new run has to be told: the last of each. */
  #plan: Extract<Input, { readonly kind: 'plan' }> | undefined;
  #uplink: Extract<Input, { readonly kind: 'uplink' }> | undefined;
  /** For how long the machine had been suspended at the last look. */
  #suspendedMs: number;
  /** node -> when its last message came; EIP -> when it was first asked for. */
  readonly #heardAtMs = new Map<string, number>();
  readonly #askedAtMs = new Map<Ip, number>();
  #addressByNode: ReadonlyMap<string, string> = new Map();
  #cancel: () => void = nothing;
  /** When the timer that is set fires. */
  #firesAtMs = Infinity;
  #isClosed = false;

  constructor(deps: ProtocolRunnerDeps) {
    this.#deps = deps;
    this.#seal = deps.createSeal();
    this.#suspendedMs = deps.clock.suspendedMs();
  }

  /** The tunnel addresses of all nodes; may be set at any time. */
  setAddresses(addressByNode: ReadonlyMap<string, string>): void {
    this.#addressByNode = addressByNode;
  }

  /** Something happened on this node. Before the first plan nothing counts. */
  take(input: Input): void {
    if (this.#isClosed) return;
    this.look();
    const { node, timing, held, promisedUntilMs, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (input.kind === 'plan') {
      this.#plan = input;
      this.#ownership ??= new Ownership({ node, timing, held, promisedUntilMs, nowMs });
    } else if (input.kind === 'uplink') this.#uplink = input;
    this.#step(input, nowMs);
  }

  /**
   * Looks at the time that has passed, before anything else is done. An agent that went on after it had been stopped for long begins
   * anew, as after a start, and finds nothing in its kernel: what that still holds, another node may own. So do machines that were suspended.
   */
  look(): void {
    const { node, timing, clock, heldUntilMs, createSeal, tell } = this.#deps;
    const nowMs = clock.monotonicMs();
    const suspendedMs = clock.suspendedMs() - this.#suspendedMs;
    this.#suspendedMs += suspendedMs;
    const stale = this.#ownership;
    if (this.#isClosed || stale?.isStale({ nowMs, heldUntilMs: heldUntilMs(), suspendedMs }) !== true) return;
    this.#cancel();
    this.#firesAtMs = Infinity;
    tell({ kind: 'hold', held: [] });
    tell({ kind: 'tie', isWanted: false, epoch: 0 });
    const yielded = { kind: 'event', reason: 'OwnershipYielded', cause: 'stood still', other: undefined } as const;
    for (const { eip, epoch } of stale.owned) tell({ ...yielded, eip, epoch, took: undefined });
    const { silenceMs, widestMs } = timing;
    tell({ kind: 'silence', silenceMs, usualMs: silenceMs, widestMs });
    // Packets that wait in the socket were sealed for the run before, and are not read.
    this.#seal = createSeal();
    this.#askedAtMs.clear();
    const { promisedUntilMs } = stale;
    this.#ownership = new Ownership({ node, timing, held: [], promisedUntilMs, nowMs });
    for (const input of [this.#uplink, this.#plan]) if (input !== undefined) this.#step(input, nowMs);
  }

  #step(input: Input, nowMs: number): void {
    const ownership = this.#ownership;
    if (ownership === undefined) return;
    const effects = ownership.step(input, nowMs);
    this.#sleep(ownership);
    for (const effect of effects) this.#do(effect);
  }

  /** A packet came from an address. */
  packet(bytes: Uint8Array, address: string): void {
    this.look();
    if (this.#isClosed || this.#ownership === undefined) return;
    const opened = this.#seal.open(bytes);
    if (opened.kind === 'nothing') {
      if (opened.why !== 'proof') this.refusals[opened.why] += 1;
      return;
    }
    const from = opened.kind === 'reply' ? opened.to : opened.from;
    // The seal says that an agent wrote it, and the address which one: another agent cannot speak for it from its own.
    if (this.#addressByNode.get(from) !== address) this.refusals.stranger += 1;
    else if (opened.kind === 'reply') this.#deps.send(address, opened.packet);
    else {
      this.#heardAtMs.set(from, this.#deps.clock.monotonicMs());
      this.take(opened);
    }
  }

  /** Does nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  /**
   * Sets the timer, unless one is set that fires in time. One that is due is left alone: on a busy machine packets come at every
   * turn of the event loop, and a timer that each of them sets anew would never fire, so that no heartbeat would leave.
   */
  #sleep(ownership: Ownership): void {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#firesAtMs <= Math.max(nowMs, ownership.wakeAtMs)) return;
    this.#cancel();
    this.#firesAtMs = Math.max(nowMs, ownership.wakeAtMs);
    this.#cancel = clock.after(ownership.wakeAtMs - nowMs, () => {
      this.#firesAtMs = Infinity;
      if (ownership.wakeAtMs > clock.monotonicMs()) this.#sleep(ownership);
      else this.take({ kind: 'wake' });
    });
  }

  #do(effect: Effect): void {
    const { send, askKernel, tell } = this.#deps;
    const [seal, run] = [this.#seal, this.#ownership];
    if (effect.kind === 'send') {
      if (effect.message.kind === 'claim') this.#noteClaim(effect.message);
      const address = this.#addressByNode.get(effect.to);
      if (address !== undefined) send(address, seal.seal(effect.to, effect.message));
    } else if (effect.kind === 'echo') {
      const { node, sequence } = effect;
      const address = this.#addressByNode.get(node);
      if (address !== undefined) {
        askKernel(address, () => {
          if (run === this.#ownership) this.take({ kind: 'echoed', node, sequence });
        });
      }
    } else if (effect.kind === 'event') {
      tell({ ...effect, took: this.#tookOf(effect) });
    } else {
      tell(effect);
    }
  }

  #noteClaim({ wanted }: VoteRequest): void {
    const nowMs = this.#deps.clock.monotonicMs();
    // Asked in vain for so long, it is another attempt.
    const staleMs = 10 * this.#deps.timing.silenceMs;
    for (const { eip, isOwned } of wanted) {
      const askedAtMs = this.#askedAtMs.get(eip) ?? -Infinity;
      if (!isOwned && nowMs - askedAtMs > staleMs) this.#askedAtMs.set(eip, nowMs);
    }
  }

  #tookOf({ reason, eip, other }: ProtocolEvent): Took | undefined {
    const askedAtMs = this.#askedAtMs.get(eip);
    this.#askedAtMs.delete(eip);
    const heardAtMs = other === undefined ? undefined : this.#heardAtMs.get(other);
    if (reason !== 'EipTakenOver' || askedAtMs === undefined || heardAtMs === undefined) return undefined;
    return { detectionMs: askedAtMs - heardAtMs, claimMs: this.#deps.clock.monotonicMs() - askedAtMs };
  }
}

const nothing = (): void => {};
