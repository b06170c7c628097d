/** The loops of the plan: tunnels (a), gateways and policies (b). Each is a table of pure functions for one kind. */
import { finalizers } from '../../api/names.ts';
import type { PartDeps } from '../part.ts';
import { gatewayChanges, gatewayOwnership } from './gateway-changes.ts';
import { gatewayHappenings, policyHappenings, tunnelHappenings } from './happenings.ts';
import { Loop } from './loop.ts';
import { policyChanges, policyOwnership } from './policy-changes.ts';
import { tunnelChanges, tunnelOwnership } from './tunnel-changes.ts';

/** A gateway may list thousands of EIPs, and every policy changes it: its view may be a little behind. */
const gatewayPaceMs = 500;

/** One EgressTunnel per node. */
export const tunnelLoop = (deps: PartDeps) =>
  new Loop(
    {
      name: 'tunnels',
      kind: 'EgressTunnel',
      cache: deps.caches.tunnels,
      finalizer: finalizers.tunnel,
      ownership: tunnelOwnership,
      keysOf: ({ tunnelByNode }) => tunnelByNode.keys(),
      changesOf: (node, { tunnelByNode }, kept, now) => tunnelChanges(tunnelByNode.get(node), kept, now),
      happeningsOf: tunnelHappenings,
    },
    deps,
  );

/** The finalizer and the status of gateways. */
export const gatewayLoop = (deps: PartDeps) =>
  new Loop(
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
      happeningsOf: gatewayHappenings,
      paceMs: gatewayPaceMs,
    },
    deps,
  );

/** The status of policies of one kind. */
export const policyLoop = (kind: 'EgressPolicy' | 'EgressClusterPolicy', deps: PartDeps) =>
  new Loop(
    {
      name: kind === 'EgressPolicy' ? 'policies' : 'cluster-policies',
      kind,
      cache: kind === 'EgressPolicy' ? deps.caches.policies : deps.caches.clusterPolicies,
      finalizer: undefined,
      ownership: policyOwnership,
      keysOf: () => [],
      changesOf: (key, { policyByKey }, kept, now) => {
        const decided = policyByKey.get(key);
        return decided === undefined || kept === undefined ? [] : policyChanges(decided, kept, now);
      },
      happeningsOf: policyHappenings,
    },
    deps,
  );
