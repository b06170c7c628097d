/** What goes into the mirror and what comes out of it: plain values, also between threads. */
import type { Ip } from '../../core/ip/index.ts';

/** What this node owns, and where others are. */
export interface MirrorPlan {
  readonly owned: readonly MirroredEip[];
  /** Addresses of EIPs that are to come here by plan, and whose owner tells this node about their connections. */
  readonly awaited: readonly Ip[];
  /** node -> its tunnel address */
  readonly addresses: ReadonlyMap<string, string>;
  /** The connection mark by which other nodes send replies to this one; undefined until the node has a tunnel. */
  readonly replyMark: number | undefined;
}

export interface MirroredEip {
  /** The addresses of the EIP, one or two. */
  readonly ips: readonly Ip[];
  /** Who is to know its connections: those that would take over, the next one first; none where mirror supervisor is turned off. */
  readonly successors: readonly string[];
}

/** How many successors of an EIP know its connections: when one is lost, the next should not have to begin. */
export const SUCCESSORS = 2;

export interface MirrorStats {
  /** Connections of this node's EIPs that successors are told about. */
  readonly mirrored: number;
  /** Connections of other nodes' EIPs that this node would make. */
  readonly held: number;
  /** Times that a connection found no room. */
  readonly dropped: number;
  /** Age of the oldest change that a successor has not confirmed. */
  readonly lagSeconds: number;
  /** EIPs, once for each successor that does not know all of their connections. */
  readonly behind: number;
  /** Times that a successor had to be told everything again. */
  readonly resets: number;
  /** Connections made at take-overs, and those that the kernel refused. */
  readonly written: number;
  readonly refused: number;
}
