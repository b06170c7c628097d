/**
 * Two faults at once that make two owners for a while, as docs/explanation/failover.md says: the agent of an owner is away while the other
 * nodes do not hear that node. Nobody is there to let its EIPs go until the agent is back, or the lease of its kernel is over.
 */

/** One such time. Times are milliseconds since 1970. */
export interface Doubled {
  readonly node: string;
  readonly fromMs: number;
  /** Two nodes may answer until then and no longer: sooner when the agent is back sooner. */
  untilMs: number;
}

/** The lease of the kernel (26 s), and what a busy machine adds. */
const leaseMs = 28_000;
/** An agent that is back and hears nobody keeps for 1.4 s what it finds in its kernel; and what a busy machine adds. */
const letGoMs = 2_500;

export const beginDoubled = (node: string, fromMs: number): Doubled => ({ node, fromMs, untilMs: fromMs + leaseMs });

/** The agent is back. */
export const endDoubled = (doubled: Doubled, backAtMs: number): void => {
  doubled.untilMs = Math.min(doubled.untilMs, backAtMs + letGoMs);
};

/**
 * Whether frames of these nodes, one after the other between two times, are what such a time explains: the node itself and a single other
 * one, and not a moment before or after it. It explains no packet with a foreign address, and no other pair of nodes.
 */
export const isExplained = (all: readonly Doubled[], nodes: readonly string[], fromMs: number, toMs: number): boolean =>
  nodes.length === 2 &&
  all.some(({ node, fromMs: since, untilMs }) => nodes.includes(node) && fromMs >= since && toMs <= untilMs);
