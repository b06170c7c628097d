/**
 * The plans of all policies: what their gateways gave them, with slots and shadows. What was decided about a policy is
 * remembered together with what it was decided from, so that of thousands only those are read that may have changed.
 */

import type { GatewayView, PolicyView } from '../cluster/view.ts';
import type { GatewayAllocation, Granted } from '../gateways/gateway-allocation.ts';
import type { Placement } from '../gateways/placement.ts';
import type { PolicyRequest } from '../gateways/requests.ts';
import { createSlots, type SlotClaim } from '../gateways/slots.ts';
import type { ShadowsNow } from '../policies/incremental-shadows.ts';
import { compareLists, placeIn } from '../policies/policy-order.ts';
import { compareAge } from '../policies/precedence.ts';
import type { Shadow } from '../policies/shadows.ts';
import { acceptedPolicy, isStillServed, type PolicyPlan, refusedPolicy } from './policy-plan.ts';

/** What the plans are made from. */
export interface PolicyPlansInput {
  /** Sorted by age. */
  readonly policies: readonly PolicyView[];
  /** One for each policy, in their order; undefined for one that is being deleted. */
  readonly bound: readonly (PolicyRequest | undefined)[];
  readonly servedBy: ReadonlyMap<GatewayView, GatewayAllocation>;
  readonly shadows: ShadowsNow;
}

/** Plans, and what is new about them since the last time. */
export interface PolicyPlans {
  /** In order of age, without policies that are being deleted. */
  readonly plans: readonly PolicyPlan[];
  readonly changes: readonly PolicyChange[];
}

/**
 * A policy that is another value than last time, or that has another plan. Without a plan the value is gone; if it was
 * replaced by another one of the same policy, a change with that follows.
 */
export interface PolicyChange {
  readonly policy: PolicyView;
  readonly plan: PolicyPlan | undefined;
}

/** A policy with what its gateway gave it. */
interface PolicyAllocation {
  readonly bound: PolicyRequest;
  /** What its gateway did; undefined without one. */
  readonly by: GatewayAllocation | undefined;
  readonly granted: Granted | undefined;
}

/** The same, with what was decided. */
interface Row extends PolicyAllocation {
  readonly plan: PolicyPlan;
}

interface PreviousPolicyPlans {
  readonly input: PolicyPlansInput;
  /** One for each policy, in their order; undefined for one that is being deleted. */
  readonly rows: readonly (Row | undefined)[];
}

/** Makes a function that gives the plans of policies. */
export const createPolicyPlans = (): ((input: PolicyPlansInput) => PolicyPlans) => {
  const assignSlots = createSlots();
  let last: PreviousPolicyPlans | undefined;
  return (input) => {
    const { rows, open, gone } = carriedOver(input, last);
    const answers = new Map<number, PolicyAllocation>();
    const claims = { gone: gone.flatMap(claimOf), come: [] as SlotClaim[] };
    for (const [place, known] of open) {
      const answer = answerOf(input, place);
      if (answer === undefined) continue;
      answers.set(place, answer);
      // Of a policy that is another value, the old claim is gone already.
      const isSameValue = known?.bound.policy === answer.bound.policy;
      if (isSameValue && isSameClaim(known, answer)) continue;
      if (isSameValue) claims.gone.push(...claimOf(known));
      claims.come.push(...claimOf(answer));
    }
    const slots = assignSlots(claims, () => rows.flatMap((row, place) => claimOf(answers.get(place) ?? row)));
    const changes: PolicyChange[] = gone.map(({ bound: { policy } }) => ({ policy, plan: undefined }));
    const isAnew = slots.areAnew || input.shadows.changed === undefined;
    for (const place of isAnew ? rows.keys() : open.keys()) {
      const before = rows[place];
      const answer = answers.get(place) ?? before;
      if (answer === undefined) continue;
      const { policy } = answer.bound;
      const known = before ?? open.get(place);
      const plan = planOf(answer, known?.plan, slots.of(policy.key), input.shadows.on(policy.key));
      rows[place] = { bound: answer.bound, by: answer.by, granted: answer.granted, plan };
      if (before?.plan !== plan) changes.push({ policy, plan });
    }
    last = { input, rows };
    const plans: PolicyPlan[] = [];
    for (const row of rows) if (row !== undefined) plans.push(row.plan);
    return { plans, changes };
  };
};

/**
 * The rows of last time at the places of now, those that have to be looked at by place (with the row that the policy had
 * last time), and the rows of values that are gone.
 */
const carriedOver = (input: PolicyPlansInput, last: PreviousPolicyPlans | undefined) => {
  const { policies, bound } = input;
  const rows: (Row | undefined)[] = [];
  const gone: Row[] = [];
  const found: (readonly [number, Row | undefined])[] = [];
  compareLists(last?.input.policies ?? [], policies, {
    stays: (old, now) => {
      const row = last?.rows[old];
      rows.push(row);
      if (bound[now] !== last?.input.bound[old]) found.push([now, row]);
    },
    goes: (old) => {
      const row = last?.rows[old];
      if (row !== undefined) gone.push(row);
    },
    comes: (now, replaced) => {
      rows.push(undefined);
      found.push([now, replaced === undefined ? undefined : last?.rows[replaced]]);
    },
  });
  const known = new Map(found);
  for (const place of placesConcerned(input, last?.input)) if (!known.has(place)) known.set(place, rows[place]);
  // By age: the older policy comes first where two want the same slot.
  const open = new Map([...known].sort(([a], [b]) => a - b));
  return { rows, open, gone };
};

/** The places of policies whose gateway did something, or whose shadows are others. */
function* placesConcerned(
  { policies, servedBy, shadows }: PolicyPlansInput,
  last: PolicyPlansInput | undefined,
): Generator<number> {
  for (const [gateway, served] of servedBy) {
    if (last?.servedBy.get(gateway) === served) continue;
    let place = 0;
    for (const { policy } of served.applicants) {
      // Both lists are by age.
      while (place < policies.length && policies[place] !== policy) place += 1;
      yield place;
    }
  }
  for (const policy of shadows.changed ?? []) yield placeIn(policies, policy, compareAge);
}

const answerOf = ({ bound, servedBy }: PolicyPlansInput, place: number): PolicyAllocation | undefined => {
  const one = bound[place];
  if (one === undefined) return undefined;
  const by = one.gateway && servedBy.get(one.gateway);
  return { bound: one, by, granted: by?.granted.get(one.policy.key) };
};

const claimOf = (answer: PolicyAllocation | undefined): readonly SlotClaim[] =>
  answer?.granted === undefined ? [] : [{ policy: answer.bound.policy, eip: answer.granted.eip }];

const isSameClaim = ({ granted: a }: PolicyAllocation, { granted: b }: PolicyAllocation): boolean =>
  (a === undefined) === (b === undefined) &&
  (a?.eip === undefined) === (b?.eip === undefined) &&
  a?.eip?.ipv4 === b?.eip?.ipv4 &&
  a?.eip?.ipv6 === b?.eip?.ipv6;

const planOf = (
  { bound, by, granted }: PolicyAllocation,
  last: PolicyPlan | undefined,
  slot: number | undefined,
  shadows: readonly Shadow[],
): PolicyPlan => {
  const { policy } = bound;
  if (by === undefined || granted === undefined) {
    const because = bound.gateway === undefined ? bound.refusal : by?.refused.get(policy.key);
    if (because === undefined) throw new TypeError(`nobody has decided about policy ${policy.key}`);
    return refusedPolicy(policy, by?.gateway.name, because, shadows);
  }
  const place = by.places.get(granted.load) ?? nowhere;
  const given = { gateway: by.gateway.name, eip: granted.eip, place, slot, nodes: by.nodes };
  return last !== undefined && isStillServed(last, policy, given, shadows)
    ? last
    : acceptedPolicy(policy, given, shadows);
};

const nowhere: Placement = { node: undefined, isServing: false, epoch: 0 };
