/**
 * The order of policies, and of gateways. It is total, so the policy that wins for a packet never depends on the order of events:
 * the lower priority number, then a namespaced before a cluster policy, then the older, then the first by key.
 */

import type { GatewayView, PolicyView } from '../cluster/view.ts';
import { compareText } from '../values/hash.ts';

type Ranked = Pick<PolicyView, 'key' | 'kind' | 'createdAtMs' | 'spec'>;

/** Orders policies, the winning one first. A policy without a readable spec comes last: it matches nothing. */
export const comparePrecedence = (a: Ranked, b: Ranked): number =>
  priorityOf(a) - priorityOf(b) || Number(isCluster(a)) - Number(isCluster(b)) || compareAge(a, b);

/** Orders policies by age, the oldest first: the order in which they have a right to what they hold. */
export const compareAge = (
  a: Pick<PolicyView, 'key' | 'createdAtMs'>,
  b: Pick<PolicyView, 'key' | 'createdAtMs'>,
): number => a.createdAtMs - b.createdAtMs || compareText(a.key, b.key);

/** Orders gateways by age, the oldest first: the older one has the right to what two of them want. */
export const compareGatewayAge = (a: GatewayView, b: GatewayView): number =>
  a.createdAtMs - b.createdAtMs || compareText(a.name, b.name);

/** Says in words why `winner` comes before `loser`. */
export const precedenceSentence = (winner: Ranked, loser: Ranked): string => {
  const [first, second] = [priorityOf(winner), priorityOf(loser)];
  if (first !== second) return `${winner.key} comes first: priority ${first} is before ${second}.`;
  if (winner.kind !== loser.kind)
    return `${winner.key} comes first: a policy of the namespace is before a cluster policy.`;
  if (winner.createdAtMs !== loser.createdAtMs) return `${winner.key} comes first: it is older.`;
  return `${winner.key} comes first by name; both were made at the same time.`;
};

const priorityOf = ({ spec }: Ranked): number => spec?.priority ?? Number.MAX_SAFE_INTEGER;
const isCluster = ({ kind }: Ranked): boolean => kind === 'EgressClusterPolicy';
