/**
 * A small cluster for tests of core: API objects in memory, as an API server would hold them. viewOf() reads them the
 * way the controller does; record() writes a plan into their statuses; agentsReport() does what agents do. Read World
 * first. Not shipped.
 */
import { isDeepStrictEqual } from 'node:util';
import { Config } from '../../api/config.ts';
import type { ClusterView, TunnelView } from '../cluster/view.ts';
import type { Plan } from '../plan/plan.ts';
import {
  type ApiObject,
  type NamespaceObject,
  type NodeObject,
  projectClusterInfo,
  projectClusterPolicy,
  projectGateway,
  projectNamespace,
  projectNode,
  projectPolicy,
  projectSettings,
  projectTunnel,
} from '../project/index.ts';
import { recordGateway, recordPolicy, recordTunnel } from '../status/record.ts';

/** The objects of a cluster by name; policies by key. Values are replaced, never changed. */
export interface World {
  readonly nodes: Map<string, NodeObject>;
  readonly tunnels: Map<string, ApiObject>;
  readonly gateways: Map<string, ApiObject>;
  readonly policies: Map<string, ApiObject>;
  readonly namespaces: Map<string, NamespaceObject>;
  /** Nodes whose agents are silent. */
  readonly silent: Set<string>;
  clusterInfo: ApiObject | undefined;
}

/** A cluster without anything; it was looked for ranges, and none were found. */
export const emptyWorld = (): World => ({
  nodes: new Map(),
  tunnels: new Map(),
  gateways: new Map(),
  policies: new Map(),
  namespaces: new Map(),
  silent: new Set(),
  clusterInfo: { metadata: { name: 'default' }, status: { egressIgnoreCIDR: {} } },
});

/** A copy that can be changed without changing the first. */
export const copyWorld = (world: World): World => ({
  nodes: new Map(world.nodes),
  tunnels: new Map(world.tunnels),
  gateways: new Map(world.gateways),
  policies: new Map(world.policies),
  namespaces: new Map(world.namespaces),
  silent: new Set(world.silent),
  clusterInfo: world.clusterInfo,
});

const settings = projectSettings(Config.parse({ feature: { enableIPv6: true } }), 'seed');

/** The view of the cluster. */
export const viewOf = (world: World): ClusterView => ({
  settings,
  ranges: projectClusterInfo(world.clusterInfo),
  nodes: [...world.nodes.values()].map(projectNode),
  tunnels: [...world.tunnels.values()].map((tunnel) => projectTunnel(tunnel, heartbeatIn(world, tunnel))),
  gateways: [...world.gateways.values()].map(projectGateway),
  policies: [...world.policies.values()].map((object) =>
    object.metadata.namespace === undefined ? projectClusterPolicy(object) : projectPolicy(object),
  ),
  namespaces: [...world.namespaces.values()].map(projectNamespace),
});

/**
 * Makes a viewOf that gives for every object that says the same as last time the very value of last time, as the caches
 * of a controller do.
 */
export const createViewer = (): ((world: World) => ClusterView) => {
  const known = new Map<string, unknown>();
  const keep = <T>(name: string, value: T): T => {
    // Under one name there are only values of one type.
    const last = known.get(name) as T | undefined;
    if (last !== undefined && isDeepStrictEqual(last, value)) return last;
    known.set(name, value);
    return value;
  };
  return (world) => {
    const view = viewOf(world);
    return {
      settings: keep('settings', view.settings),
      ranges: keep('ranges', view.ranges),
      nodes: view.nodes.map((node) => keep(`node ${node.name}`, node)),
      tunnels: view.tunnels.map((tunnel) => keep(`tunnel ${tunnel.node}`, tunnel)),
      gateways: view.gateways.map((gateway) => keep(`gateway ${gateway.name}`, gateway)),
      policies: view.policies.map((policy) => {
        // A new binding does not make the spec a new value.
        const spec = policy.spec && keep(`spec ${policy.key}`, policy.spec);
        return keep(`policy ${policy.key}`, { ...policy, spec });
      }),
      namespaces: view.namespaces.map((namespace) => keep(`namespace ${namespace.name}`, namespace)),
    };
  };
};

// An agent that has never reported has never been heard of.
const heartbeatIn = (world: World, tunnel: ApiObject): TunnelView['heartbeat'] => {
  if (Object.keys(agentPart(tunnel)).length === 0) return 'never';
  return world.silent.has(tunnel.metadata.name) ? 'stale' : 'fresh';
};

/** Writes what was planned into the objects: creates, deletes and statuses, as the controller does. */
export const record = (world: World, plan: Plan): void => {
  for (const policy of plan.policies) setStatus(world.policies, policy.key, recordPolicy(policy));
  for (const gateway of plan.gateways) setStatus(world.gateways, gateway.name, recordGateway(gateway));
  for (const tunnel of plan.tunnels) {
    const existing = world.tunnels.get(tunnel.node);
    const metadata = existing?.metadata ?? { name: tunnel.node, creationTimestamp: '2026-01-01T00:00:00Z' };
    const { tunnel: written, ...rest } = recordTunnel(tunnel);
    const parent = existing && agentPart(existing);
    const report = existing === undefined ? {} : { report: reportIn(existing) };
    world.tunnels.set(tunnel.node, { metadata, status: { ...rest, tunnel: { ...written, ...parent }, ...report } });
  }
  for (const node of plan.orphanTunnels) world.tunnels.delete(node);
};

/** Every agent builds its tunnel device and says so, with the addresses of its node. */
export const agentsReport = (world: World): void => {
  for (const [name, tunnel] of world.tunnels) {
    const { status } = tunnel;
    const written = typeof status === 'object' && status !== null && 'tunnel' in status ? status.tunnel : {};
    const addresses = world.nodes.get(name)?.status?.addresses?.map(({ address }) => address) ?? [];
    const ipv4 = addresses.find((address) => !address.includes(':'));
    const ipv6 = addresses.find((address) => address.includes(':'));
    const parent = { name: 'eth0', ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
    world.tunnels.set(name, { ...tunnel, status: { ...(status ?? {}), tunnel: { ...(written ?? {}), parent } } });
  }
};

/** The EIPs that agents report to hold, with their epochs, by node; a report that is not of tests holds none. */
export const heldIn = (world: World): ReadonlyMap<string, readonly HeldEip[]> =>
  new Map([...world.tunnels].map(([node, tunnel]) => [node, reportIn(tunnel).eips ?? []]));

/** Lets a node take an EIP over: it reports the addresses with an epoch later than any other, and no other node has them. */
export const takeOver = (world: World, node: string, ips: readonly string[]): void => {
  const latest = Math.max(0, ...[...heldIn(world).values()].flat().map(({ epoch }) => epoch));
  for (const [name, tunnel] of world.tunnels) {
    const kept = (reportIn(tunnel).eips ?? []).filter(({ ip }) => !ips.includes(ip));
    const taken = name === node ? ips.map((ip) => ({ ip, epoch: latest + 1 })) : [];
    const report = { ...reportIn(tunnel), eips: [...kept, ...taken] };
    world.tunnels.set(name, { ...tunnel, status: { ...(tunnel.status ?? {}), report } });
  }
};

/** Lets a node take over what a gateway has recorded with another one under node addresses. */
export const takeOverGroup = (world: World, taker: string, gateway: string, node: string): void => {
  const isGroup = (group: HeldGroup): boolean => group.gateway === gateway && group.node === node;
  const groups = [...world.tunnels.values()].flatMap((tunnel) => reportIn(tunnel).nodeGroups ?? []);
  const latest = Math.max(0, ...groups.filter(isGroup).map(({ epoch }) => epoch));
  for (const [name, tunnel] of world.tunnels) {
    const kept = (reportIn(tunnel).nodeGroups ?? []).filter((group) => !isGroup(group));
    const taken = name === taker ? [{ gateway, node, epoch: latest + 1 }] : [];
    const report = { ...reportIn(tunnel), nodeGroups: [...kept, ...taken] };
    world.tunnels.set(name, { ...tunnel, status: { ...(tunnel.status ?? {}), report } });
  }
};

interface HeldGroup {
  readonly gateway: string;
  readonly node: string;
  readonly epoch: number;
}

interface HeldEip {
  readonly ip: string;
  readonly epoch: number;
}

interface HeldReport {
  readonly eips?: readonly HeldEip[];
  readonly nodeGroups?: readonly HeldGroup[];
}

const reportIn = ({ status }: ApiObject): HeldReport => {
  const report = typeof status === 'object' && status !== null && 'report' in status ? status.report : undefined;
  // Reports in a World are those that tests put there.
  return typeof report === 'object' && report !== null ? (report as HeldReport) : {};
};

const setStatus = (objects: Map<string, ApiObject>, name: string, status: unknown): void => {
  const object = objects.get(name);
  // Statuses go through text, as they do on their way to the API server and back.
  if (object !== undefined) objects.set(name, { ...object, status: JSON.parse(JSON.stringify(status)) });
};

const agentPart = ({ status }: ApiObject): object => {
  const tunnel = typeof status === 'object' && status !== null && 'tunnel' in status ? status.tunnel : undefined;
  return typeof tunnel === 'object' && tunnel !== null && 'parent' in tunnel ? { parent: tunnel.parent } : {};
};
