/** MemoryCaches are the caches of a Decider that follow nothing; whoever has them puts objects as the API server would show them. */
import type { EgressTunnelStatus } from '../../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../../api/policy.ts';
import { type ApiObject, projectGateway, projectPolicy, projectTunnel } from '../../../core/project/index.ts';
import type { KubeObject } from '../../../runtime/kube/resource.ts';
import { Store } from '../../../runtime/kube/store.ts';
import {
  identityOf,
  type KeptClusterInfo,
  type KeptGateway,
  type KeptPolicy,
  type KeptTunnel,
  type KnownNamespace,
  type KnownNode,
  knownNode,
} from '../../loop/caches.ts';

export class MemoryCaches {
  readonly nodes = { store: new Store<KnownNode>({}) };
  readonly namespaces = { store: new Store<KnownNamespace>({}) };
  readonly gateways = { store: new Store<KeptGateway>({}) };
  readonly policies = { store: new Store<KeptPolicy>({}) };
  readonly clusterPolicies = { store: new Store<KeptPolicy>({}) };
  readonly tunnels = { store: new Store<KeptTunnel>({}) };
  readonly clusterInfos = { store: new Store<KeptClusterInfo>({}) };

  putNode(name: string, object: Parameters<typeof knownNode>[0]): void {
    this.nodes.store.put(name, knownNode(object));
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
