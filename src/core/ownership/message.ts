/**
 * The messages between agents. Each says who sent it and in which run (incarnation); src/agent/heartbeat seals them, so
 * that only agents can write one and an old one is not taken for a new one. Any of them may be lost, late, doubled or
 * overtaken by a later one.
 */
import type { Ip } from '../ip/index.ts';
import type { Unreached } from './reach.ts';

/** An EIP and the epoch of an owner. */
export interface Holding {
  readonly eip: Ip;
  readonly epoch: number;
}

/** An EIP that a node wants, or wants to keep, with its vote. */
export interface RequestedHolding extends Holding {
  /** False while the sender does not own it yet. */
  readonly isOwned: boolean;
}

/**
 * An EIP for which a voter does not vote. `held`: another node has its vote, in the epoch given. `soon`: the same, but that
 * node is overdue. `epoch`: nobody has it, but a higher epoch than this one is needed. `starting`: it votes for nobody yet.
 */
export interface Refusal extends Holding {
  readonly why: 'held' | 'soon' | 'epoch' | 'starting';
}

/**
 * Who understands promises numbers its messages from here on. An agent of an older version begins at one, and answers any number: so both
 * know each other from the first message on, and no message is another one.
 */
export const PROMISES_FROM = 2 ** 47;

/** Sent by every gateway node to all members, each heartbeat. */
export interface Beat {
  readonly kind: 'beat';
  /** Numbers the messages that are answered; the sender knows when it sent which. */
  readonly sequence: number;
  /** The networks whose EIPs do not reach the outside from the sender; at most `NETWORKS_PER_BEAT`. */
  readonly unreached: readonly Unreached[];
}

/** The answer to a beat, at once. It prolongs every vote that the sender has given to the receiver. */
export interface Ack {
  readonly kind: 'ack';
  readonly sequence: number;
  /** How often the sender has given away a vote of the receiver unasked: when it grows, no earlier vote counts. */
  readonly losses: number;
  /**
   * The sender promises to wait for a silence of so many whole milliseconds, counted from when the message came that it answers, before
   * it gives a vote of the receiver away. Undefined: for the silence of the configuration.
   */
  readonly promisedMs: number | undefined;
}

/** Asks a voter for its vote. */
export interface VoteRequest {
  readonly kind: 'claim';
  readonly sequence: number;
  /** Of the electorate that the sender goes by. */
  readonly generation: number;
  readonly wanted: readonly RequestedHolding[];
}

/** The answer to a claim. */
export interface VoteAnswer {
  readonly kind: 'answer';
  readonly sequence: number;
  readonly losses: number;
  readonly granted: readonly Holding[];
  readonly refused: readonly Refusal[];
}

/** The sender does not want these EIPs, up to these epochs; `to` is meant to have them next. Itself: it does not know of them yet. */
export interface Release {
  readonly kind: 'release';
  readonly released: readonly Holding[];
  readonly to: string | undefined;
}

/**
 * `doubt`: somebody else wants EIPs for which the sender has voted for the receiver; does it still want them?
 * `offer`: the sender owns EIPs that the receiver is to have by plan. `ready`: it has prepared its kernel for them.
 */
export interface Word {
  readonly kind: 'doubt' | 'offer' | 'ready';
  readonly holdings: readonly Holding[];
}

/** Tells a node who owns from now on: the sender. Repeated until it is noted. */
export interface Notice {
  readonly kind: 'notice';
  readonly sequence: number;
  readonly holdings: readonly Holding[];
}

/** The answer to a notice. */
export interface Noted {
  readonly kind: 'noted';
  readonly sequence: number;
}

export type Message = Beat | Ack | VoteRequest | VoteAnswer | Release | Word | Notice | Noted;
