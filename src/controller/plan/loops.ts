/** The loops of the plan: tunnels (a), gateways and policies (b). Each is a table of pure functions for one kind. */
import { finalizers } from '../../api/names.ts';
import { recordPolicy } from '../../core/status/record.ts';
import type { Identity } from '../loop/caches.ts';
import type { ControlLoopDeps } from '../loop/control-loop.ts';
import type { Members } from '../membership/members.ts';
import { gatewayEvents, policyEvents, type ReportedEpoch, tunnelEvents } from './events.ts';
import { canWaitLonger, eipsIn, gatewayChanges, gatewayOwnership } from './gateway-changes.ts';
import { KindLoop } from './loop.ts';
import { canWait, isForPeople, policyChanges, policyOwnership } from './policy-changes.ts';
import type { RolloutTracker } from './rollout-tracker.ts';
import { tunnelChanges, tunnelOwnership } from './tunnel-changes.ts';

/** Every policy changes its gateway: the view of it may be a little behind. */
const gatewayPaceMs = 2_000;
/**
 * What a write costs the API server, and everybody who watches, grows with the EIPs that are listed: a list that only
 * says who has which EIP is written less often the longer it is. With 500 EIPs (100 KB) every two seconds, ten gateways
 * kept a server of two cores busy, and policies waited for it.
 */
const [paceMsPerEip, longestPaceMs] = [20, 30_000];

/** For what nobody waits for in the status of a policy. */
const policyPaceMs = 1_000;

/** One EgressTunnel per node. */
export const tunnelLoop = (deps: ControlLoopDeps) =>
  new KindLoop(
    {
      name: 'tunnels',
      kind: 'EgressTunnel',
      cache: deps.caches.tunnels,
      finalizer: finalizers.tunnel,
      ownership: tunnelOwnership,
      keysOf: ({ tunnelByNode }) => tunnelByNode.keys(),
      changesOf: (node, { tunnelByNode }, kept, now) => tunnelChanges(tunnelByNode.get(node), kept, now),
      happeningsOf: tunnelEvents,
    },
    deps,
  );

/** The finalizer and the status of gateways. */
export const gatewayLoop = (deps: ControlLoopDeps) =>
  new KindLoop(
    {
      name: 'gateways',
      kind: 'EgressGateway',
      cache: deps.caches.gateways,
      finalizer: finalizers.gateway,
      ownership: gatewayOwnership,
      keysOf: () => [],
      changesOf: (name, { gatewayByName, gatewaysInUse }, kept, now) => {
        const decided = gatewayByName.get(name);
        if (decided === undefined || kept === undefined) return [];
        return gatewayChanges(decided, gatewaysInUse.has(name), kept, now);
      },
      happeningsOf: (before, after) => gatewayEvents(before, after, heldIn(deps)),
      changedSince: (last, { gatewayByName, gatewaysInUse }) =>
        [...gatewayByName]
          .filter(
            ([name, decided]) =>
              last.gatewayByName.get(name) !== decided || last.gatewaysInUse.has(name) !== gatewaysInUse.has(name),
          )
          .map(([name]) => name),
      paceMs: (before, after) =>
        canWaitLonger(before, after)
          ? Math.min(longestPaceMs, Math.max(gatewayPaceMs, paceMsPerEip * eipsIn(after)))
          : gatewayPaceMs,
    },
    deps,
  );

/** What the statuses of policies say besides the plan. */
export interface PolicyKnowledge {
  readonly members: Pick<Members, 'count'>;
  readonly book: Pick<RolloutTracker, 'of'>;
}

/** The status of policies of one kind. */
export const policyLoop = (
  kind: 'EgressPolicy' | 'EgressClusterPolicy',
  { members, book }: PolicyKnowledge,
  deps: ControlLoopDeps,
) =>
  new KindLoop(
    {
      name: kind === 'EgressPolicy' ? 'policies' : 'cluster-policies',
      kind,
      cache: kind === 'EgressPolicy' ? deps.caches.policies : deps.caches.clusterPolicies,
      finalizer: undefined,
      ownership: policyOwnership,
      keysOf: () => [],
      changesOf: (key, { policyByKey }, kept, now) => {
        const decided = policyByKey.get(key);
        if (decided === undefined || kept === undefined || decided.uid !== kept.identity.uid) return [];
        const { generation, plan } = decided;
        const progress = book.of(kept.view, generation, recordPolicy(plan));
        return policyChanges(decided, kept, { matchedPods: members.count(plan.key) ?? 0, progress }, now);
      },
      happeningsOf: (before, after) => policyEvents(before, after, heldIn(deps)),
      changedSince: (last, decision) => {
        const isNext = decision.number === last.number + 1 && decision.silentNodes === last.silentNodes;
        return isNext ? decision.changedPolicies : decision.policyByKey.keys();
      },
      // Nothing is given from a gateway before our finalizer holds it: it could be deleted under the policy.
      hasToWait: (key, { policyByKey }) => {
        const { binding, gateway = '' } = policyByKey.get(key)?.plan ?? {};
        const found = binding === undefined ? undefined : deps.caches.gateways.store.get(gateway)?.identity;
        return found !== undefined && isNotHeld(found);
      },
      paceMs: (before, after) => (canWait(before, after) ? policyPaceMs : 0),
      canStepBack: isForPeople,
    },
    deps,
  );

/** True for a gateway that would be gone at once if it were deleted now. */
export const isNotHeld = ({ isDeleting, finalizers: found }: Identity): boolean =>
  !isDeleting && !found.includes(finalizers.gateway);

const heldIn =
  ({ caches }: ControlLoopDeps): ReportedEpoch =>
  (node, ip) =>
    caches.tunnels.store.get(node)?.view.held.find((held) => held.ip === ip)?.epoch;
