/**
 * slicesPart keeps the endpoint slices of all policies, and the number of matched pods in their statuses. Caches tell
 * Membership and KnownSlices of every change; the policies that changed are gathered for a moment and then worked off
 * one by one.
 */
import type { PolicyKey } from '../../core/view.ts';
import { Controller, type ReconcileResult } from '../../runtime/control/controller.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import type { Caches, KeptPolicy, KeptSlice } from '../caches.ts';
import type { Part, PartDeps } from '../part.ts';
import { ChangedKeys } from './changed-keys.ts';
import { KnownSlices } from './known-slices.ts';
import { reconcileMatchedPods } from './matched-pods.ts';
import { Membership } from './membership.ts';
import { reconcileSlices } from './reconcile.ts';

/** The slices of a policy whose pods come and go are written at most so often; they are not on the packet path. */
const slicesWindowMs = 100;
/** Every agent reads the status of every policy, so the number changes less often than the slices. */
const countsWindowMs = 1_000;
/** Policies worked on at once: enough to keep the API server busy, too few to be throttled. */
const workers = 8;

/** The part, and what it knows for others. */
export interface SlicesPart extends Part {
  /** How many pods a policy applies to, as the caches are now; undefined when there is no such policy. */
  matchedPods(policy: PolicyKey): number | undefined;
}

/** Makes the part. It follows the caches from now on, so that a new leader starts at once; it writes only while it runs. */
export const slicesPart = (deps: PartDeps): SlicesPart => {
  const { caches, client, clock, config } = deps;
  const log = deps.log.child({ component: 'slices' });
  const membership = new Membership();
  const known = new KnownSlices();
  const changes: Changes = {
    slices: new ChangedKeys(clock, slicesWindowMs),
    counts: new ChangedKeys(clock, countsWindowMs),
  };
  follow(caches, membership, known, changes);

  const slices = controllerOf(deps, {
    name: 'slices',
    changes: changes.slices,
    present: () => [...membership.policies(), ...known.policies()],
    reconcile: (key, signal) => {
      const state = {
        key,
        policy: membership.policy(key),
        existing: known.of(key),
        wanted: membership.endpoints(key),
        limit: config.current.feature.maxNumberEndpointPerSlice,
      };
      return reconcileSlices({ client, clock, log }, known, state, signal);
    },
  });
  const counts = controllerOf(deps, {
    name: 'matched-pods',
    changes: changes.counts,
    present: () => membership.policies(),
    reconcile: (key, signal) => {
      const policy = caches.policies.store.get(key) ?? caches.clusterPolicies.store.get(key);
      return reconcileMatchedPods(client, policy, membership.count(key), signal);
    },
  });
  return {
    name: 'slices',
    matchedPods: (policy) => membership.count(policy),
    missing: () =>
      [slices, counts].flatMap((controller) => {
        const missing = controller.missing();
        return missing === undefined ? [] : [`${controller.name}: ${missing}`];
      }),
    run: async (signal) => {
      await Promise.all([slices.run(signal), counts.run(signal)]);
    },
  };
};

/** The policies whose slices, or whose number of pods, may be wrong. */
interface Changes {
  readonly slices: ChangedKeys<PolicyKey>;
  readonly counts: ChangedKeys<PolicyKey>;
}

const follow = (caches: Caches, membership: Membership, known: KnownSlices, changes: Changes): void => {
  const changed = (policies: readonly PolicyKey[]): void => {
    changes.slices.add(policies);
    changes.counts.add(policies);
  };
  const takePolicy = (change: StoreChange<KeptPolicy>): void => {
    const key = (change.kind === 'put' ? change.value : change.previous).view.key;
    changed(membership.setPolicy(key, change.kind === 'put' ? change.value.view : undefined));
    if (change.kind === 'put' && change.value.status?.matchedPods !== membership.count(key)) changes.counts.add([key]);
  };
  const takeSlice = (change: StoreChange<KeptSlice>): void => changes.slices.add(known.take(change));
  caches.namespaces.subscribe((change) =>
    changed(membership.setNamespace(change.key, change.kind === 'put' ? change.value.labels : undefined)),
  );
  caches.pods.subscribe((change) =>
    changed(membership.setPod(change.key, change.kind === 'put' ? change.value : undefined)),
  );
  for (const cache of [caches.policies, caches.clusterPolicies]) cache.subscribe(takePolicy);
  for (const cache of [caches.slices, caches.clusterSlices]) cache.subscribe(takeSlice);
};

interface PolicyLoop {
  readonly name: string;
  readonly changes: ChangedKeys<PolicyKey>;
  /** The policies to look at when the loop starts. */
  readonly present: () => Iterable<PolicyKey>;
  readonly reconcile: (key: PolicyKey, signal: AbortSignal) => Promise<ReconcileResult>;
}

const controllerOf = (deps: PartDeps, { name, changes, present, reconcile }: PolicyLoop): Controller => {
  const watch = {
    name: 'pods and policies',
    synced: deps.caches.synced,
    presentKeys: present,
    subscribe: (listener: (keys: Iterable<string>) => void) => changes.subscribe(listener),
  };
  const controller = new Controller(
    {
      name,
      watches: [watch],
      workers,
      // The watch hands out nothing but keys of policies.
      reconcile: (key, signal) => reconcile(key as PolicyKey, signal),
    },
    { ...deps, hooks: deps.metrics.controller(name) },
  );
  deps.metrics.observeQueue(controller);
  return controller;
};
