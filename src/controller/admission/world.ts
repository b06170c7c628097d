/**
 * AdmissionWorld makes the AdmissionView of this moment from the caches. What few objects make is put together anew
 * after a change; policies are many and change often, so they are followed one by one.
 */
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import { projectClusterInfo, projectSettings } from '../../core/project/index.ts';
import type { ConfigSource } from '../../runtime/config/source.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import type { CachedPolicy, ControllerCache, ControllerCaches } from '../loop/caches.ts';
import { PolicyRegister } from './policy-register.ts';
import { type AdmissionView, clusterPartsOf } from './view.ts';

/** The caches that the rules read. */
export type AdmissionCaches = Pick<
  ControllerCaches,
  'nodes' | 'namespaces' | 'gateways' | 'policies' | 'clusterPolicies' | 'clusterInfos'
>;

/** Follows the caches from its making until `close`. */
export class AdmissionWorld {
  readonly #caches: AdmissionCaches;
  readonly #config: ConfigSource;
  readonly #policies = new PolicyRegister();
  readonly #subscriptions: (() => void)[];
  #view: AdmissionView | undefined;

  constructor(caches: AdmissionCaches, config: ConfigSource) {
    this.#caches = caches;
    this.#config = config;
    const forget = (): void => {
      this.#view = undefined;
    };
    this.#subscriptions = [
      caches.nodes.subscribe(forget),
      caches.gateways.subscribe(forget),
      caches.clusterInfos.subscribe(forget),
      config.changed(forget),
      this.#follow(caches.policies),
      this.#follow(caches.clusterPolicies),
    ];
  }

  /** What is known now. Cheap: only a change of a node, a gateway, the cluster info or the configuration costs work. */
  view(): AdmissionView {
    this.#view ??= this.#assemble();
    return this.#view;
  }

  /** Stops to follow. May be called twice. */
  close(): void {
    for (const end of this.#subscriptions.splice(0)) end();
  }

  #follow(cache: ControllerCache<CachedPolicy>): () => void {
    const end = cache.subscribe((change: StoreChange<CachedPolicy>) => {
      if (change.kind === 'put') this.#policies.put(change.value.view);
      else this.#policies.remove(change.previous.view.key);
    });
    for (const { view } of cache.store.values()) this.#policies.put(view);
    return end;
  }

  #assemble(): AdmissionView {
    const { nodes, namespaces, gateways, clusterInfos } = this.#caches;
    const nodeViews = [...nodes.store.values()];
    const ranges = projectClusterInfo(clusterInfos.store.get(clusterInfoName)?.view);
    return {
      // No rule draws lots, so the seed of the allocator `random` does not matter here.
      settings: projectSettings(this.#config.current, ''),
      ranges,
      clusterParts: clusterPartsOf(ranges, nodeViews),
      nodes: nodeViews,
      gateways: [...gateways.store.values()].map(({ view }) => view),
      namespace: (name) => namespaces.store.get(name),
      policies: this.#policies,
    };
  }
}
