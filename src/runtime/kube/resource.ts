/**
 * Resource says where objects of one kind live on the API server; KubeObject is what every object has.
 * Names of objects travel as keys: `namespace/name`, or `name` for cluster-scoped ones.
 */

import type { Resource } from '../../api/kinds.ts';

export type { Resource };

/** The part of an owner reference that we read and write. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Object metadata. Everything but the name is absent until the server has seen the object. */
export interface ObjectMeta {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
}

/** Any object of the API. Items of a LIST come without apiVersion and kind: the list carries them. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** The name of one object; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** A resource of the core group, such as pods. */
export const coreResource = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: '',
  version: 'v1',
  plural,
  kind,
  namespaced,
});

/** Returns `namespace/name`, or `name` for a cluster-scoped object. */
export function keyOf(object: { readonly metadata: ObjectRef }): string {
  return refKey(object.metadata);
}

/** Returns the key of a reference; refKey(refOf(key)) is key. */
export function refKey(ref: ObjectRef): string {
  return ref.namespace === undefined || ref.namespace === '' ? ref.name : `${ref.namespace}/${ref.name}`;
}

/** Turns a key back into a reference. Names hold no slash, so the first one separates. */
export function refOf(key: string): ObjectRef {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Returns `v1` or `group/version`, as manifests spell it. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** Returns the URL path of a collection (no name) or of one object, with an optional subresource. */
export function pathOf(
  resource: Resource,
  where: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string } = {},
): string {
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const parts = [root, resource.version];
  if (resource.namespaced && where.namespace !== undefined)
    parts.push('namespaces', encodeURIComponent(where.namespace));
  parts.push(resource.plural);
  if (where.name !== undefined) parts.push(encodeURIComponent(where.name));
  if (where.subresource !== undefined) parts.push(where.subresource);
  return parts.join('/');
}
