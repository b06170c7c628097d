/**
 * slicesLoop keeps the endpoint slices of all policies. Members and SliceIndex tell of every change; the policies that
 * changed are gathered for a moment and then worked off one by one.
 */
import type { PolicyKey } from '../../core/cluster/view.ts';
import { Controller } from '../../runtime/control/controller.ts';
import { ChangedKeys } from '../loop/changed-keys.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import type { Members } from '../membership/members.ts';
import { SliceIndex } from './known-slices.ts';
import { reconcileSlices } from './reconcile.ts';

/** The slices of a policy whose pods come and go are written at most so often; they are not on the packet path. */
const windowMs = 100;
/** Policies worked on at once: enough to keep the API server busy, too few to be throttled. */
const workers = 8;

/** Makes the part. It follows the caches from now on, so that a new leader starts at once; it writes only while it runs. */
export const slicesLoop = (deps: ControlLoopDeps, members: Members): ControlLoop => {
  const { caches, client, clock, config } = deps;
  const log = deps.log.child({ component: 'slices' });
  const known = new SliceIndex();
  const changed = new ChangedKeys<PolicyKey>(clock, windowMs);
  members.subscribe((policies) => changed.add(policies));
  for (const cache of [caches.slices, caches.clusterSlices]) {
    cache.subscribe((change) => changed.add(known.take(change)));
  }
  const controller = new Controller(
    {
      name: 'slices',
      watches: [
        {
          name: 'pods and policies',
          synced: caches.synced,
          presentKeys: () => [...members.policies(), ...known.policies()],
          subscribe: (listener) => changed.subscribe(listener),
        },
      ],
      workers,
      reconcile: (name, signal) => {
        // The watch hands out nothing but keys of policies.
        const key = name as PolicyKey;
        const state = {
          key,
          policy: members.policy(key),
          existing: known.of(key),
          wanted: members.endpoints(key),
          limit: config.current.feature.maxNumberEndpointPerSlice,
        };
        return reconcileSlices({ client, clock, log }, known, state, signal);
      },
    },
    { ...deps, hooks: deps.metrics.controller('slices') },
  );
  deps.metrics.observeQueue(controller);
  return {
    name: 'slices',
    missing: () => {
      const lack = controller.missing();
      return lack === undefined ? [] : [lack];
    },
    run: (signal) => controller.run(signal),
  };
};
