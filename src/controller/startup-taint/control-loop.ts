/**
 * startupTaintLoop takes the start-up taint off nodes whose agent is ready. Whoever makes nodes puts it there (the kubelet, a node pool), so
 * that no pod is scheduled to a node that has no rules yet. The controller does it and not the agent: an agent has no right on nodes.
 */
import { taints } from '../../api/names.ts';
import { Controller, type ReconcileResult } from '../../runtime/control/controller.ts';
import { type Watch, watch } from '../../runtime/control/watch.ts';
import { isInvalid, isNotFound } from '../../runtime/kube/api-error.ts';
import type { JsonPatchOperation } from '../../runtime/kube/client.ts';
import { coreResource } from '../../runtime/kube/resource.ts';
import type { CachedNode, CachedTunnel } from '../loop/caches.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';

const nodeResource = coreResource('nodes', 'Node', false);
const againMs = 500;

/** Makes the part. */
export const startupTaintLoop = (deps: ControlLoopDeps): ControlLoop => {
  const { caches, client, metrics } = deps;
  const log = deps.log.child({ component: 'startup-taint' });
  const reconcile = async (name: string, signal: AbortSignal): Promise<ReconcileResult> => {
    const node = caches.nodes.store.get(name);
    if (node === undefined || node.startupTaints.length === 0) return { kind: 'done' };
    if (!isReady(node, caches.tunnels.store.get(name))) return { kind: 'done' };
    try {
      await client.patch(nodeResource, { name }, { kind: 'json', operations: removalOf(node) }, { signal });
    } catch (error) {
      if (isNotFound(error)) return { kind: 'done' };
      // Somebody has changed the taints, and the cache will hear of it.
      if (isInvalid(error)) return { kind: 'requeue', afterMs: againMs };
      throw error;
    }
    log.info({ key: name }, 'the agent is ready, and the start-up taint is gone');
    return { kind: 'done' };
  };
  const controller = new Controller(
    { name: 'startup-taint', watches: [watch('nodes', caches.nodes, tainted), tunnelsOfTainted(deps)], reconcile },
    { ...deps, hooks: metrics.controller('startup-taint') },
  );
  metrics.observeQueue(controller);
  return {
    name: 'startup-taint',
    missing: () => {
      const missing = controller.missing();
      return missing === undefined ? [] : [missing];
    },
    run: (signal) => controller.run(signal),
  };
};

const tainted = (name: string, { startupTaints }: CachedNode): string[] => (startupTaints.length === 0 ? [] : [name]);

/** Every agent writes its tunnel every few seconds, and next to no node has the taint. */
const tunnelsOfTainted = ({ caches }: ControlLoopDeps): Watch => ({
  name: 'tunnels',
  synced: caches.tunnels.synced,
  presentKeys: () => [],
  subscribe: (listener) =>
    caches.tunnels.subscribe(({ key }) => {
      const node = caches.nodes.store.get(key);
      if (node !== undefined && node.startupTaints.length > 0) listener([key]);
    }),
});

/**
 * True when the tunnel is in use, which takes an agent whose table is in force, and its report is younger than the node: a node
 * that is made anew under the name of another one is not ready because that one was.
 */
const isReady = (node: CachedNode, tunnel: CachedTunnel | undefined): boolean =>
  tunnel?.status?.phase === 'Ready' && Date.parse(tunnel.status.lastHeartbeatTime ?? '') > node.createdAtMs;

/** Takes our taints off, the last one first, if they still are where they were. */
const removalOf = ({ startupTaints }: CachedNode): JsonPatchOperation[] =>
  startupTaints.toReversed().flatMap((place): JsonPatchOperation[] => {
    const path = `/spec/taints/${place}`;
    return [
      { op: 'test', path: `${path}/key`, value: taints.startup },
      { op: 'remove', path },
    ];
  });
