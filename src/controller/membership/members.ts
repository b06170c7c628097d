/**
 * Members is the Membership that follows the caches: who is under which policy, as far as this process knows now. Every
 * replica has one from its start, so that a new leader starts from a complete one.
 */
import type { PolicyKey } from '../../core/cluster/view.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import type { CachedPolicy, ControllerCaches } from '../loop/caches.ts';
import { Membership } from './membership.ts';

/** What others may ask. */
export interface Members extends Pick<Membership, 'policies' | 'policy' | 'count' | 'endpoints' | 'nodes'> {
  /** Calls back with the policies whose pods, or addresses or nodes of them, have changed. */
  subscribe(listener: (policies: readonly PolicyKey[]) => void): () => void;
}

/** The caches that tell who is under a policy. */
export type MembersSource = {
  readonly [K in 'namespaces' | 'pods' | 'policies' | 'clusterPolicies']: Pick<ControllerCaches[K], 'subscribe'>;
};

/** Follows the caches from now on. Make it once per process, before the caches run and before anybody who asks it. */
export const followMembers = (caches: MembersSource): Members => {
  const membership = new Membership();
  const listeners = new Set<(policies: readonly PolicyKey[]) => void>();
  const tell = (policies: readonly PolicyKey[]): void => {
    if (policies.length > 0) for (const listener of listeners) listener(policies);
  };
  const takePolicy = (change: StoreChange<CachedPolicy>): void => {
    const { key } = (change.kind === 'put' ? change.value : change.previous).view;
    tell(membership.setPolicy(key, change.kind === 'put' ? change.value.view : undefined));
  };
  caches.namespaces.subscribe((change) =>
    tell(membership.setNamespace(change.key, change.kind === 'put' ? change.value.labels : undefined)),
  );
  caches.pods.subscribe((change) =>
    tell(membership.setPod(change.key, change.kind === 'put' ? change.value : undefined)),
  );
  caches.policies.subscribe(takePolicy);
  caches.clusterPolicies.subscribe(takePolicy);
  return {
    policies: () => membership.policies(),
    policy: (key) => membership.policy(key),
    count: (key) => membership.count(key),
    endpoints: (key) => membership.endpoints(key),
    nodes: (key) => membership.nodes(key),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
