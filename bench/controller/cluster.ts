/** A cluster made of objects without processes: nodes, tunnels whose agents report, pods, gateways, policies. */
import { kinds, resourceOf } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { coreResource, type KubeObject } from '../../src/runtime/kube/resource.ts';

export const namespace = 'bench';
export const policies = resourceOf('EgressPolicy');
export const gateways = resourceOf('EgressGateway');
export const tunnels = resourceOf('EgressTunnel');
export const slices = resourceOf('EgressEndpointSlice');
const { group, version } = kinds.EgressPolicy;
const apiVersion = `${group}/${version}`;

/** Calls `work` for 0 to count - 1, at most `width` at a time. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}

export async function makeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.apply(
    coreResource('namespaces', 'Namespace', false),
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    { fieldManager: 'bench' },
  );
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: name } };
  await client.apply(coreResource('serviceaccounts', 'ServiceAccount', true), account, { fieldManager: 'bench' });
}

export async function makeNodes(client: KubeClient, count: number): Promise<void> {
  const nodes = coreResource('nodes', 'Node', false);
  await inParallel(count, 16, async (index) => {
    const metadata = { name: `node-${index}`, labels: { egress: index < 10 ? 'true' : 'false' } };
    await client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata });
    const address = { type: 'InternalIP', address: `172.31.0.${index + 1}` };
    const ready = { type: 'Ready', status: 'True', reason: 'Bench', lastTransitionTime: new Date().toISOString() };
    const patch = { kind: 'merge', value: { status: { addresses: [address], conditions: [ready] } } } as const;
    await client.patch(nodes, { name: metadata.name }, patch, { subresource: 'status' });
  });
}

/** What an agent says of its kernel: up to which revision it is in step, and the EIPs that it answers for. */
export interface Played {
  readonly appliedRevision: string;
  /** node -> EIPs */
  readonly eips: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Plays the agents: every node reports that its device stands, and what is played of its kernel. */
export async function reportTunnels(client: KubeClient, played?: Played): Promise<number> {
  const names: string[] = [];
  for await (const page of client.list(tunnels)) names.push(...page.items.map(({ metadata }) => metadata.name));
  await inParallel(names.length, 8, async (index) => {
    const name = names[index] ?? '';
    const eips = [...(played?.eips.get(name) ?? [])].map((ip) => ({ ip, epoch: 0 }));
    const status = {
      tunnel: { parent: { name: 'eth0', ipv4: '172.31.0.1' } },
      lastHeartbeatTime: new Date().toISOString(),
      ...(played === undefined ? {} : { report: { appliedRevision: played.appliedRevision, eips } }),
    };
    const patch = { kind: 'merge', value: { status } } as const;
    await client.patch(tunnels, { name }, patch, { subresource: 'status' });
  });
  return names.length;
}

export async function makePods(client: KubeClient, count: number, apps: number): Promise<void> {
  const pods = coreResource('pods', 'Pod', true);
  await inParallel(count, 32, async (index) => {
    const metadata = { name: `pod-${index}`, namespace, labels: { app: `app-${index % apps}` } };
    const spec = { nodeName: `node-${10 + (index % 40)}`, containers: [{ name: 'main', image: 'none' }] };
    await client.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec } as KubeObject);
    const ip = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
    const value = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
    await client.patch(pods, { name: metadata.name, namespace }, { kind: 'merge', value }, { subresource: 'status' });
  });
}

export function gateway(index: number): KubeObject {
  const spec = {
    ippools: { ipv4: [`192.168.${index * 4}.0/22`] },
    nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
  };
  return { apiVersion, kind: 'EgressGateway', metadata: { name: `gateway-${index}` }, spec } as KubeObject;
}

export function policy(name: string, app: string, gatewayIndex: number): KubeObject {
  const spec = {
    egressGatewayName: `gateway-${gatewayIndex}`,
    egressIP: { allocatorPolicy: 'rr' },
    appliedTo: { podSelector: { matchLabels: { app } } },
    destSubnet: ['203.0.113.0/24'],
  };
  return { apiVersion, kind: 'EgressPolicy', metadata: { name, namespace }, spec } as KubeObject;
}
