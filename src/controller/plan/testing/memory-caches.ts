/** MemoryCaches are the caches of a Decider that follow nothing; whoever has them puts objects as the API server would show them. */
import type { EgressTunnelStatus } from '../../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../../api/policy.ts';
import { type ApiObject, projectGateway, projectPolicy, projectTunnel } from '../../../core/project/index.ts';
import type { KubeObject } from '../../../runtime/kube/resource.ts';
import { Store } from '../../../runtime/kube/store.ts';
import {
  type CachedClusterInfo,
  type CachedGateway,
  type CachedNamespace,
  type CachedNode,
  type CachedPolicy,
  type CachedTunnel,
  cachedNode,
  identityOf,
} from '../../loop/caches.ts';

export class MemoryCaches {
  readonly nodes = { store: new Store<CachedNode>({}) };
  readonly namespaces = { store: new Store<CachedNamespace>({}) };
  readonly gateways = { store: new Store<CachedGateway>({}) };
  readonly policies = { store: new Store<CachedPolicy>({}) };
  readonly clusterPolicies = { store: new Store<CachedPolicy>({}) };
  readonly tunnels = { store: new Store<CachedTunnel>({}) };
  readonly clusterInfos = { store: new Store<CachedClusterInfo>({}) };

  putNode(name: string, object: Parameters<typeof cachedNode>[0]): void {
    this.nodes.store.put(name, cachedNode(object));
  }

  putGateway(name: string, object: ApiObject): void {
    this.gateways.store.put(name, { identity: identity(object), view: projectGateway(object), status: undefined });
  }

  putTunnel(name: string, status: EgressTunnelStatus): void {
    const object = { metadata: { name, uid: `uid-${name}` }, status };
    this.tunnels.store.put(name, { identity: identity(object), view: projectTunnel(object, 'never'), status });
  }

  putPolicy(key: string, object: ApiObject, status: PolicyStatus | undefined): void {
    const shown = { ...object, status };
    this.policies.store.put(key, { identity: identity(shown), view: projectPolicy(shown), status });
  }
}

/** The metadata of test objects is what the API server would give them. */
const identity = (object: ApiObject) => identityOf(object as KubeObject);
