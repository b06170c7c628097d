/** AdmissionRequests as the API server makes them from manifests. */
import { isKindName, kinds } from '../../../api/kinds.ts';
import type { AdmissionRequest } from '../../../runtime/serve/admission-review.ts';
import { isSameObject, type Manifest } from './cluster.ts';

/** The request to write or delete an object in a cluster. */
export const requestFor = (
  object: Manifest,
  cluster: readonly Manifest[],
  operation: 'write' | 'delete' | 'status' = 'write',
): AdmissionRequest => {
  const { kind, metadata } = object;
  if (!isKindName(kind)) throw new Error(`${kind} is not one of our kinds`);
  const { group, version, plural } = kinds[kind];
  const old = cluster.find((other) => isSameObject(other, object));
  return {
    uid: 'u-1',
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    ...(operation === 'status' ? { subResource: 'status' } : {}),
    name: metadata.name,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    operation: operation === 'delete' ? 'DELETE' : old === undefined ? 'CREATE' : 'UPDATE',
    userInfo: { username: 'alice', groups: [] },
    object: operation === 'delete' ? undefined : object,
    oldObject: old,
    dryRun: false,
  };
};
