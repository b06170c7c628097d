/** Demand: which gateway each policy asks for an address, or why it asks none. */

import { type Finding, finding } from '../cluster/finding.ts';
import type { ClusterView, GatewayView, PolicyView } from '../cluster/view.ts';
import { compareLists, placeIn } from '../policies/policy-order.ts';
import { compareAge, compareGatewayAge } from '../policies/precedence.ts';
import { isSameList } from '../values/equality.ts';
import type { Applicant } from './allocation.ts';
import { chooseGateway, type GatewayLookup, lookupOf } from './choice.ts';

/** A gateway with the policies that use it, the oldest first. */
export interface GatewayRequests {
  readonly gateway: GatewayView;
  readonly applicants: readonly Applicant[];
}

/** A policy that is not being deleted, with the gateway that it uses or why it uses none. */
export type PolicyRequest =
  | { readonly policy: PolicyView; readonly gateway: GatewayView; readonly applicant: Applicant }
  | { readonly policy: PolicyView; readonly gateway: undefined; readonly refusal: Finding };

/** The demand of all policies. */
export interface AllRequests {
  /** The oldest gateway first. A list of applicants is the same value as last time while it has the same ones. */
  readonly demands: readonly GatewayRequests[];
  /** One for each policy of the view, in its order; undefined for one that is being deleted. */
  readonly bound: readonly (PolicyRequest | undefined)[];
  readonly clusterDefault: string | undefined;
}

/** What is remembered. */
interface PreviousRequests extends AllRequests, Pick<ClusterView, 'gateways' | 'namespaces' | 'policies'> {
  readonly lookup: GatewayLookup;
}

/**
 * Makes a function that finds the gateway of every policy; its policies are sorted by age. While gateways and namespaces are
 * the same values as last time, only policies that are not are asked.
 */
export const createRequests = (): ((view: ClusterView) => AllRequests) => {
  let last: PreviousRequests | undefined;
  return (view) => {
    const { gateways, namespaces, policies } = view;
    const isSame = last !== undefined && isSameList(last.gateways, gateways) && isSameList(last.namespaces, namespaces);
    const known = isSame && last !== undefined ? last : nothingYet(view);
    const { lookup, clusterDefault } = known;
    const bound: (PolicyRequest | undefined)[] = [];
    const changes = new Map<GatewayView, { readonly gone: Set<Applicant>; readonly come: Applicant[] }>();
    const changesOf = (gateway: GatewayView) => {
      const of = changes.get(gateway) ?? { gone: new Set(), come: [] };
      changes.set(gateway, of);
      return of;
    };
    compareLists(known.policies, policies, {
      stays: (old) => bound.push(known.bound[old]),
      goes: (old) => {
        const one = known.bound[old];
        if (one?.gateway !== undefined) changesOf(one.gateway).gone.add(one.applicant);
      },
      comes: (now) => {
        const policy = policies[now];
        const one = policy === undefined || policy.isDeleting ? undefined : bind(policy, lookup);
        bound.push(one);
        if (one?.gateway !== undefined) changesOf(one.gateway).come.push(one.applicant);
      },
    });
    const demands = known.demands.map((demand) => {
      const of = changes.get(demand.gateway);
      return of === undefined ? demand : { ...demand, applicants: changed(demand.applicants, of.gone, of.come) };
    });
    last = { gateways, namespaces, policies, lookup, clusterDefault, demands, bound };
    return last;
  };
};

const nothingYet = ({ gateways, namespaces }: ClusterView): PreviousRequests => {
  const lookup = lookupOf(gateways, namespaces);
  return {
    ...{ gateways, namespaces, policies: [], lookup, bound: [], clusterDefault: lookup.clusterDefault?.name },
    demands: gateways.toSorted(compareGatewayAge).map((gateway) => ({ gateway, applicants: [] })),
  };
};

/** A list that is sorted by age, without those who went and with those who came, who are sorted too. */
const changed = (
  list: readonly Applicant[],
  gone: ReadonlySet<Applicant>,
  come: readonly Applicant[],
): readonly Applicant[] => {
  const stayed = gone.size === 0 ? [...list] : list.filter((applicant) => !gone.has(applicant));
  if (stayed.length === 0) return come;
  for (const applicant of come) stayed.splice(placeIn(stayed, applicant, compareApplicants), 0, applicant);
  return stayed;
};

const compareApplicants = (a: Applicant, b: Applicant): number => compareAge(a.policy, b.policy);

const bind = (policy: PolicyView, lookup: GatewayLookup): PolicyRequest => {
  const { key, spec, problems } = policy;
  if (spec === undefined) {
    const refusal = problems[0] ?? finding('SpecInvalid', `Policy ${key} cannot be read.`);
    return { policy, gateway: undefined, refusal };
  }
  const chosen = chooseGateway(policy, spec, lookup);
  return chosen.ok
    ? { policy, gateway: chosen.value, applicant: { policy, spec } }
    : { policy, gateway: undefined, refusal: chosen.finding };
};
