/** WhyReport is what `why` answers: what was decided, and whether statuses and kernels agree with it. */
import type { Decision } from '../core/explain/explain.ts';
import type { PacketOutcome } from '../core/policies/outcome.ts';
import type { Check } from './check.ts';
import type { PodDecisions, TrafficOutcome } from './decide.ts';

/** What `why` answers. */
export interface WhyReport {
  readonly pod: { readonly name: string; readonly node: string | undefined; readonly addresses: readonly string[] };
  /** The destination that was asked for; undefined: all of them. */
  readonly to: string | undefined;
  /** Empty where no policy could ever be about the packets. */
  readonly ways: readonly WayLine[];
  readonly decisions: readonly Decision[];
  readonly checks: readonly Check[];
  /** What the reader has to know about how the answer was made. */
  readonly notes: readonly string[];
  /** False when traffic that a policy is about does not leave through its gateway, or when a check differs. */
  readonly isFine: boolean;
}

/** What becomes of new connections from one address of the pod to some destinations. */
export interface WayLine {
  readonly source: string;
  /** The destinations. */
  readonly to: string;
  readonly policy: string | undefined;
  readonly gateway: string | undefined;
  readonly outcome: PacketOutcome;
  /** False when traffic that a policy is about does not get out through its gateway now. */
  readonly isFine: boolean;
}

/** Puts the report together. */
export const whyOf = (
  { pod, to, ways, decisions, unshown }: PodDecisions,
  checks: readonly Check[],
  notes: readonly string[],
): WhyReport => {
  const lines = ways.map(lineOf);
  return {
    pod: { name: `${pod.namespace}/${pod.name}`, node: pod.node, addresses: [...pod.ipv4, ...pod.ipv6] },
    to,
    ways: lines,
    decisions,
    checks,
    notes:
      unshown === 0
        ? notes
        : [...notes, `${unshown} more policies select it; ask about one destination with --to ADDRESS.`],
    isFine: lines.every(({ isFine }) => isFine) && checks.every(({ result }) => result !== 'different'),
  };
};

const lineOf = ({ source, about, policy, outcome }: TrafficOutcome): WayLine => ({
  source,
  to: about,
  policy: policy?.key,
  gateway: policy?.gateway,
  outcome,
  isFine: outcome.kind === 'leftAlone' || (outcome.kind === 'gateway' && policy?.binding?.isServing === true),
});
