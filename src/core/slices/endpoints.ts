/** Endpoints: the pods under a policy, as its slices list them. */
import type { EgressEndpoint } from '../../api/egress-endpoint-slice.ts';
import type { Labels } from '../cluster/labels.ts';
import type { NamespaceView, PodView, PolicyView } from '../cluster/view.ts';
import { appliesTo } from '../policies/policy-index.ts';
import { compareText } from '../values/hash.ts';

/** One pod under a policy: an EgressEndpoint with all its fields, so that two can be compared. */
export interface Endpoint extends EgressEndpoint {
  readonly ns: string;
  readonly pod: string;
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  readonly node: string;
}

/** The endpoints of a policy, sorted by namespace and name. Host-network and finished pods are never among them. */
export const endpointsOf = (
  policy: PolicyView,
  pods: Iterable<PodView>,
  namespaceByName: ReadonlyMap<string, NamespaceView>,
): Endpoint[] => {
  const none: Labels = {};
  return Iterator.from(pods)
    .filter((pod) => appliesTo(policy, pod, namespaceByName.get(pod.namespace)?.labels ?? none))
    .map(endpointOf)
    .toArray()
    .toSorted((a, b) => compareText(a.ns, b.ns) || compareText(a.pod, b.pod));
};

/** The endpoint of a pod. */
export const endpointOf = ({ namespace, name, node, ipv4, ipv6 }: PodView): Endpoint => ({
  ns: namespace,
  pod: name,
  ipv4,
  ipv6,
  node: node ?? '',
});
