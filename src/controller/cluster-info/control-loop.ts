/**
 * clusterInfoLoop keeps the one EgressClusterInfo: it makes it if it is missing, and writes what was detected into its
 * status whenever that differs from what the status says.
 */
import type { Condition } from '../../api/condition.ts';
import { clusterInfoName, type EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import { resourceOf } from '../../api/kinds.ts';
import type { ClusterFacts } from '../../core/cluster/ignore-set.ts';
import { Controller, type ReconcileResult } from '../../runtime/control/controller.ts';
import { isConflict, isNotFound } from '../../runtime/kube/api-error.ts';
import { clearing, shows } from '../../runtime/kube/owned-status.ts';
import { apiVersionOf, type KubeObject } from '../../runtime/kube/resource.ts';
import type { CachedClusterInfo } from '../loop/caches.ts';
import { ChangedKeys } from '../loop/changed-keys.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import { ApiServers } from './api-servers.ts';
import { type CalicoPool, CalicoPools } from './calico.ts';
import { KindSource, type Reading } from './kind-source.ts';
import {
  ControlPlaneFlags,
  projectServiceCidr,
  rangesOfApi,
  type ServiceRanges,
  serviceCidrResource,
} from './service-ranges.ts';
import { readInfoSpec } from './spec.ts';
import { SpecDefaults } from './spec-defaults.ts';
import { ownership, statusOf } from './status.ts';

/** The name under which the status is applied. */
export const fieldManager = 'sallyport-cluster-info';

/** A burst of new nodes is one write. */
const windowMs = 100;
/** Flags of the control plane change without telling; this is how old what we know of them may be. */
const flagsAgeMs = 60_000;

const resource = resourceOf('EgressClusterInfo');
type ClusterInfoObject = KubeObject & { readonly spec?: unknown; readonly status?: EgressClusterInfoStatus };

/** What is read besides the caches. */
interface ClusterInfoSources {
  readonly apiServers: ApiServers;
  readonly calico: CalicoPools;
  readonly services: KindSource<readonly string[]>;
  readonly flags: ControlPlaneFlags;
  readonly defaults: SpecDefaults;
}

/** Makes the part. It looks for Calico and the ServiceCIDR API only while it runs. */
export const clusterInfoLoop = (deps: ControlLoopDeps): ControlLoop => {
  const { caches, client, clock, config, metrics, random } = deps;
  const log = deps.log.child({ component: 'cluster-info' });
  const changed = new ChangedKeys<string>(clock, windowMs);
  const onChange = (): void => changed.add([clusterInfoName]);
  const sourceDeps = { client, clock, random, log, onChange };
  const sources: ClusterInfoSources = {
    apiServers: new ApiServers(sourceDeps),
    calico: new CalicoPools(sourceDeps),
    services: new KindSource(sourceDeps, serviceCidrResource, projectServiceCidr),
    flags: new ControlPlaneFlags(client),
    defaults: new SpecDefaults({ client, config, log }),
  };
  caches.nodes.subscribe(onChange);
  caches.clusterInfos.subscribe(onChange);
  config.changed(onChange);
  const controller = new Controller(
    {
      name: 'cluster-info',
      watches: [
        {
          name: 'nodes',
          synced: caches.synced,
          presentKeys: () => [clusterInfoName],
          subscribe: (listener) => changed.subscribe(listener),
        },
      ],
      reconcile: (_key, signal) => reconcile({ ...deps, log }, sources, signal),
    },
    { ...deps, hooks: metrics.controller('cluster-info') },
  );
  metrics.observeQueue(controller);
  return {
    name: 'cluster-info',
    missing: () => {
      const missing = controller.missing();
      return missing === undefined ? [] : [missing];
    },
    run: async (signal) => {
      const followed = [sources.apiServers, sources.calico, sources.services].map((source) => source.run(signal));
      await Promise.all([controller.run(signal), ...followed]);
    },
  };
};

const reconcile = async (
  deps: ControlLoopDeps,
  sources: ClusterInfoSources,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const kept = deps.caches.clusterInfos.store.get(clusterInfoName);
  await sources.defaults.follow(kept, signal);
  if (kept === undefined) return { kind: 'done' };
  const { spec, faults } = readInfoSpec(kept.view.spec);
  if (spec === undefined) return { kind: 'refused', reason: 'SpecInvalid', message: faults.join('; ') };
  const { autoDetect } = spec;
  const asksCalico = autoDetect.podCidrMode === 'auto' || autoDetect.podCidrMode === 'calico';
  const calico = sources.calico.reading;
  const apiServers = sources.apiServers.reading;
  const isWaiting =
    apiServers.kind === 'waiting' ||
    (autoDetect.clusterIP && sources.services.reading.kind === 'waiting') ||
    (asksCalico && calico.kind === 'waiting');
  // Without an answer nothing is known: what the status says stays, or traffic of the cluster would leave it.
  if (isWaiting) return { kind: 'done' };
  const ofApi = rangesOfApi(sources.services.reading);
  const needsFlags = autoDetect.clusterIP && ofApi.cidrs.length === 0;
  const serviceCidrs = needsFlags ? [ofApi, await sources.flags.read(signal)] : [ofApi];
  const status = statusOf({
    spec,
    remarks: [
      ...faults.map((fault) => `Left out: ${fault}.`),
      ...(asksCalico && calico.kind === 'absent' ? [`IPPools of Calico: ${calico.why}.`] : []),
      ...(apiServers.kind === 'absent' ? [`Addresses of the API servers: ${apiServers.why}.`] : []),
    ],
    facts: factsOf(deps, { calico, apiServers, serviceCidrs }),
    generation: kept.identity.generation,
    before: kept.status,
    now: deps.clock.now(),
  });
  if (!shows(kept.status, status, ownership)) await write(deps, kept, status, signal);
  return needsFlags ? { kind: 'requeue', afterMs: flagsAgeMs } : { kind: 'done' };
};

const factsOf = (
  { caches, config }: ControlLoopDeps,
  {
    calico,
    apiServers,
    serviceCidrs,
  }: {
    readonly calico: Reading<CalicoPool>;
    readonly apiServers: Reading<string>;
    readonly serviceCidrs: readonly ServiceRanges[];
  },
): ClusterFacts => ({
  nodes: [...caches.nodes.store.values()],
  calicoPools: calico.kind === 'present' ? calico.values : undefined,
  apiServers: apiServers.kind === 'present' ? apiServers.values : [],
  serviceCidrs,
  custom: config.current.feature.egressIgnoreCIDR.custom,
});

const write = async (
  deps: ControlLoopDeps,
  kept: CachedClusterInfo,
  status: EgressClusterInfoStatus,
  signal: AbortSignal,
): Promise<void> => {
  const { client } = deps;
  const ref = { name: clusterInfoName };
  try {
    const applied = await client.applyStatus<ClusterInfoObject>(
      resource,
      { metadata: ref, status },
      { fieldManager, signal },
    );
    // Entries that another version of the controller wrote are not ours to apply away, so they are patched away.
    const extra = applied.status && clearing(applied.status, status, ownership);
    if (extra !== undefined) {
      const patch = { kind: 'merge', value: { status: extra } } as const;
      await client.patch(resource, ref, patch, { subresource: 'status', signal });
    }
  } catch (error) {
    // Deleted, or made anew: the caches will tell.
    if (isNotFound(error) || isConflict(error)) return;
    throw error;
  }
  tell(deps, kept, status);
};

/** One line when what was found or missed has changed; an event when something is missed, or found again. */
const tell = (
  { events, log }: ControlLoopDeps,
  { identity, status: before }: CachedClusterInfo,
  status: EgressClusterInfoStatus,
): void => {
  const detected = ({ type }: Condition): boolean => type === 'Detected';
  const now = status.conditions?.find(detected);
  const old = before?.conditions?.find(detected);
  if (now === undefined || (now.reason === old?.reason && now.message === old.message)) return;
  log.info({ key: clusterInfoName, reason: now.reason }, now.message);
  const isNews = now.status === 'True' ? old?.status === 'False' : now.reason !== old?.reason;
  if (!isNews) return;
  events.record({
    regarding: { apiVersion: apiVersionOf(resource), kind: resource.kind, name: identity.name, uid: identity.uid },
    type: now.status === 'True' ? 'Normal' : 'Warning',
    reason: now.reason,
    action: 'Detect',
    note: now.message,
  });
};
