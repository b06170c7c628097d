/** What was decided about the traffic of a pod, compared with what the objects say of it. */
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { PolicyStatus } from '../api/policy.ts';
import type { PolicyPlan } from '../core/plan/policy-plan.ts';
import { readStatus } from '../core/project/api-object.ts';
import { keyOf } from '../runtime/kube/resource.ts';
import type { Check } from './check.ts';
import type { PodDecisions } from './decide.ts';
import type { OwnObjects } from './read.ts';

/** Compares the decision with the statuses that the policies show: agents act on those. */
export const checkStatuses = ({ policies }: PodDecisions, objects: OwnObjects): Check[] =>
  policies.flatMap((policy) => checkStatus(policy, objects));

const checkStatus = (policy: PolicyPlan, objects: OwnObjects): Check[] => {
  const object = [...objects.policies, ...objects.clusterPolicies].find((each) => keyOf(each) === policy.key);
  if (object === undefined) return [];
  const where = `status of ${policy.key}`;
  const { eip, node, slot, conditions } = readStatus(PolicyStatus, object) ?? {};
  const shown = bindingText([eip?.ipv4, eip?.ipv6], node, slot);
  const { binding } = policy;
  const wanted = bindingText([binding?.eip?.ipv4, binding?.eip?.ipv6], binding?.node, binding?.slot);
  const bound: Check =
    shown === wanted
      ? { where, result: 'same', sentence: `${shown}.` }
      : { where, result: 'different', sentence: `${shown}; expected: ${wanted}. Check the controller.` };
  const programmed = conditions?.find(({ type }) => type === 'Programmed');
  if (programmed === undefined || programmed.status === 'True') return [bound];
  return [bound, { where, result: 'different', sentence: `${programmed.reason}: ${programmed.message}` }];
};

const bindingText = (
  addresses: readonly (string | undefined)[],
  node: string | undefined,
  slot: number | undefined,
): string => {
  if (slot === undefined) return 'no slot';
  return `${addresses.filter(Boolean).join(' and ') || 'node IP'} on node ${node ?? '(none)'}, slot ${slot}`;
};

/** Repeats what the agents of the nodes concerned could not do, for these policies or for the whole node. */
export const checkReports = ({ pod, policies }: PodDecisions, { tunnels }: OwnObjects): Check[] => {
  const nodes = new Set([pod.node, ...policies.map(({ binding }) => binding?.node)]);
  const keys = new Set<string | undefined>([undefined, ...policies.map(({ key }) => key)]);
  return tunnels
    .filter(({ metadata }) => nodes.has(metadata.name))
    .flatMap((tunnel) =>
      (readStatus(EgressTunnelStatus, tunnel)?.report?.problems ?? [])
        .filter(({ policy }) => keys.has(policy))
        .map(({ reason, message }) => ({
          where: `report of ${tunnel.metadata.name}`,
          result: 'different',
          sentence: `${reason}: ${message}`,
        })),
    );
};
