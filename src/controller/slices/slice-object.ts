/** Between slices as core packs them and the objects on the API server: names, label, owner. Pure. */
import { resourceOf } from '../../api/kinds.ts';
import { labels } from '../../api/names.ts';
import { type PolicyKey, type PolicyView, policyKey } from '../../core/cluster/view.ts';
import type { Endpoint } from '../../core/slices/endpoints.ts';
import type { Slice } from '../../core/slices/slices.ts';
import { hashText } from '../../core/values/hash.ts';
import { apiVersionOf, type KubeObject, type OwnerReference, type Resource } from '../../runtime/kube/resource.ts';
import type { CachedSlice } from '../loop/caches.ts';

/** A slice as it is written. */
export type SliceObject = KubeObject & { readonly endpoints: readonly Endpoint[] };

/** Where the slices of a kind of policy live. */
export const sliceResourceOf = (kind: PolicyView['kind']): Resource =>
  resourceOf(kind === 'EgressPolicy' ? 'EgressEndpointSlice' : 'EgressClusterEndpointSlice');

/** The object to apply for one slice of a policy. */
export const sliceObject = (policy: PolicyView, { name, endpoints }: Slice): SliceObject => ({
  metadata: {
    name,
    generateName: generateNameOf(policy),
    ...(policy.namespace === undefined ? {} : { namespace: policy.namespace }),
    labels: { [labels.policyName]: labelOf(policy.name) },
    ownerReferences: [ownerOf(policy)],
  },
  endpoints,
});

/** The slice as core packs it. What the API server leaves out is filled in, so that endpoints can be compared. */
export const sliceOf = ({ identity, endpoints }: CachedSlice): Slice => ({
  name: identity.name,
  endpoints: endpoints.map(({ ns = '', pod = '', ipv4 = [], ipv6 = [], node = '' }) => ({ ns, pod, ipv4, ipv6, node })),
});

/**
 * The policy that a slice belongs to: its owner, or the label where the owner is gone. A slice that has neither belongs
 * to a policy with an empty name, which cannot exist, so it is removed like the slices of a policy that is gone.
 */
export const policyOfSlice = ({ identity: { namespace }, owners, policy }: CachedSlice): PolicyKey => {
  const kind = namespace === undefined ? 'EgressClusterPolicy' : 'EgressPolicy';
  const owner = owners.find((one) => one.kind === kind && one.apiVersion === ownerVersion);
  return policyKey(namespace, owner?.name ?? policy ?? '');
};

/** True when owner, label and generateName of a slice are as they are written. */
export const isMarkedFor = ({ owners, policy: label, generateName }: CachedSlice, policy: PolicyView): boolean => {
  const wanted = ownerOf(policy);
  const owner = owners.find(({ uid }) => uid === policy.uid);
  return (
    label === labelOf(policy.name) &&
    generateName === generateNameOf(policy) &&
    owner?.name === wanted.name &&
    owner.kind === wanted.kind &&
    owner.controller === true &&
    owner.blockOwnerDeletion === true
  );
};

/**
 * `metadata.generateName`. The name does not come from it: a server-side apply needs a name. Tools for the Go implementation,
 * which lets the API server make the names, find the slices of a policy by it.
 */
const generateNameOf = ({ name }: PolicyView): string => `${shortened(name, 252)}-`;

/** What the names of the slices of a policy begin with. */
export const slicePrefixOf = ({ name }: PolicyView): string => shortened(name, 240);

// The version is the same for both kinds of policies.
const ownerVersion = apiVersionOf(resourceOf('EgressPolicy'));

const ownerOf = ({ kind, name, uid }: PolicyView): OwnerReference => ({
  apiVersion: ownerVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

// A label value has at most 63 characters, the name of a policy up to 253 (Kubernetes, "Names" and "Labels", 2026).
const labelOf = (policyName: string): string => shortened(policyName, 63);

/** A name that is too long is cut and ends with its hash, so that two long names stay two. */
const shortened = (name: string, limit: number): string => {
  if (name.length <= limit) return name;
  const suffix = hashText(name).toString(36);
  // What stands before the dash must end like a name.
  return `${name.slice(0, limit - 1 - suffix.length).replace(/[-.]+$/, '')}-${suffix}`;
};
