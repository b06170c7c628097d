/**
 * What goes into the protocol and what comes out of it: plain values. Times are milliseconds of the node's own clock, which
 * never goes back.
 */
import type { Electorate } from '../cluster/view.ts';
import type { Ip } from '../ip/index.ts';
import type { Holding, Message } from './message.ts';
import type { Unreached } from './reach.ts';

/** What the API says, as far as owning is concerned. Nobody waits for it: the last one that was read is in force. */
export interface OwnershipPlan {
  readonly electorate: Electorate;
  /** The gateway nodes: those that send heartbeats. */
  readonly gateways: readonly string[];
  /** All nodes, which are told about take-overs. */
  readonly nodes: readonly string[];
  readonly eips: readonly PlannedEip[];
}

/** One EIP; of a pair, the IPv4 address stands for both. */
export interface PlannedEip {
  readonly eip: Ip;
  /** What has to reach the outside, where that is not the address alone: both of a pair; for a node group one for each family. */
  readonly addresses?: readonly Ip[];
  /** The last epoch that the API knows of. A plan that names another owner counts only if it knew the present epoch. */
  readonly epoch: number;
  /** Who should own it, then its succession. */
  readonly candidates: readonly string[];
}

/** Something that happened. */
export type Input =
  /** The time that `wakeAtMs` named has come. */
  | { readonly kind: 'wake' }
  | { readonly kind: 'message'; readonly from: string; readonly incarnation: number; readonly message: Message }
  /** The kernel of a node has answered the question of this number. */
  | { readonly kind: 'echoed'; readonly node: string; readonly sequence: number }
  | { readonly kind: 'plan'; readonly plan: OwnershipPlan }
  /** The networks whose EIPs do not reach the outside from here, because a carrier is gone or a router is silent; all of them. */
  | { readonly kind: 'uplink'; readonly unreached: readonly Unreached[] }
  /**
   * The vote of the API server: the lease is ours until then, counted from before it was asked for; undefined when it is
   * not. The lease keeps an epoch, so that an owner by this vote has a later one than those before: each new holder
   * records one more than it finds, or what it was told to record if that is more.
   */
  | { readonly kind: 'tie'; readonly untilMs: number | undefined; readonly epoch: number }
  /** The kernel has what it needs to carry these EIPs, which are to be moved here. */
  | { readonly kind: 'prepared'; readonly eips: readonly Ip[] }
  /** Other machines say on the wire that they have these EIPs. */
  | { readonly kind: 'conflict'; readonly eips: readonly Ip[] };

/**
 * What the kernel does for an EIP. `owned`: everything. `carried`: it still translates packets of the EIP but neither
 * answers for it nor announces it, because it was handed over. `prepared`: the same, because it is about to come.
 */
export type HoldMode = 'owned' | 'carried' | 'prepared';

export interface EipHold extends Holding {
  readonly mode: HoldMode;
  /** While it moves by plan, the other of the two nodes: that one may know connections that this one does not. */
  readonly other?: string;
}

/** Why an EIP changed hands, as seen by the node that got it or lost it. */
export type Cause =
  | 'start'
  | 'silence'
  | 'handed over'
  | 'voters lost'
  | 'later epoch'
  | 'uplink lost'
  | 'plan'
  | 'stood still';

/** Something to do. */
export type Effect =
  | { readonly kind: 'send'; readonly to: string; readonly message: Message }
  /** Ask the kernel of that node, through the tunnel, whether it is there. */
  | { readonly kind: 'echo'; readonly node: string; readonly sequence: number }
  /** All that the kernel should hold, in place of what it held. It lets go by itself after the lease of the timing. */
  | { readonly kind: 'hold'; readonly held: readonly EipHold[] }
  /** Tell the kernel again to hold what it holds. */
  | { readonly kind: 'renew' }
  /** Announce the EIP again. */
  | { readonly kind: 'announce'; readonly eip: Ip }
  /** Whether to hold the lease in the API server, and the epoch to record there. Before it is given up, we are told. */
  | { readonly kind: 'tie'; readonly isWanted: boolean; readonly epoch: number }
  /** The longest silence that this node grants to another one now has changed; and between which two it is. */
  | { readonly kind: 'silence'; readonly silenceMs: number; readonly usualMs: number; readonly widestMs: number }
  /** Another node owns the EIP: send its packets there. */
  | { readonly kind: 'owner'; readonly eip: Ip; readonly epoch: number; readonly node: string }
  | {
      readonly kind: 'event';
      readonly reason: 'EipTakenOver' | 'OwnershipYielded';
      readonly cause: Cause;
      readonly eip: Ip;
      readonly epoch: number;
      /** The owner before, or the node that is to follow. */
      readonly other: string | undefined;
    };
