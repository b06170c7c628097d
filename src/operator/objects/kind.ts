/** The kinds of Kubernetes that the operator writes, and what everything that it makes has in common. */
import { labels, operatorName } from '../../api/names.ts';
import {
  apiVersionOf,
  coreResource,
  type KubeObject,
  type ObjectMeta,
  type Resource,
} from '../../runtime/kube/resource.ts';

const namespaced = (group: string, version: string, plural: string, kind: string): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced: true,
});

export const resources = {
  deployments: namespaced('apps', 'v1', 'deployments', 'Deployment'),
  services: coreResource('services', 'Service', true),
  autoscalers: namespaced('autoscaling', 'v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler'),
  disruptionBudgets: namespaced('policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget'),
  networkPolicies: namespaced('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy'),
  endpointSlices: namespaced('discovery.k8s.io', 'v1', 'endpointslices', 'EndpointSlice'),
  pods: coreResource('pods', 'Pod', true),
  configMaps: coreResource('configmaps', 'ConfigMap', true),
  namespaces: coreResource('namespaces', 'Namespace', false),
} as const;

/** Kinds of which we make objects. */
export type MadeKind =
  | 'deployments'
  | 'services'
  | 'autoscalers'
  | 'disruptionBudgets'
  | 'networkPolicies'
  | 'endpointSlices';

/** An object as it should be: only the fields that we decide. */
export interface DesiredObject {
  readonly kind: MadeKind;
  readonly object: KubeObject & { readonly spec?: object };
}

/** Whoever an object is made for; the object goes with it. */
export interface ObjectOwner {
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

/** Metadata of something that we make: it is marked as ours and goes when its owner does. */
export const metadataFor = (name: string, owner: ObjectOwner, marks: Readonly<Record<string, string>>): ObjectMeta => ({
  name,
  namespace: owner.namespace,
  labels: { [labels.managedBy]: operatorName, ...marks },
  ownerReferences: [
    {
      apiVersion: apiVersionOf(owner.resource),
      kind: owner.resource.kind,
      name: owner.name,
      uid: owner.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ],
});

/** Says on an EndpointSlice who keeps it. */
export const sliceManager = 'endpointslice.kubernetes.io/managed-by';

/**
 * True for objects that carry our mark. Kubernetes copies the labels of a Service to the EndpointSlices that it makes for
 * it, so a slice that somebody else keeps is not ours, whatever else it carries.
 */
export const isOurs = ({ metadata: { labels: marks = {} } }: KubeObject): boolean =>
  marks[labels.managedBy] === operatorName && (marks[sliceManager] ?? operatorName) === operatorName;

/** A name as the value of a label, which may be shorter: its end is enough to tell it from others of a namespace. */
export const labelText = (name: string): string => name.slice(-63).replace(/^[^a-z0-9]+/, '');
