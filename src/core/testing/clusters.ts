/**
 * Random clusters for laws about nodes: gateway nodes and workers with addresses of one or both families, gateways,
 * policies of every form, and sources. Everything is drawn from a list of numbers, so that tests may draw the numbers with
 * fast-check; smaller numbers stand for simpler clusters. Not shipped.
 */

import type { ClusterView, PodView } from '../cluster/view.ts';
import { podOn } from './nodes.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from './objects.ts';
import { viewOf, type World } from './world.ts';

/** A cluster, and who sends packets in it. */
export interface Cluster {
  readonly world: World;
  readonly view: ClusterView;
  readonly sources: readonly Source[];
}

/** A sender. One that no agent knows as a pod has a single address and no labels. */
export interface Source {
  readonly pod: PodView;
  readonly isKnown: boolean;
}

/** How many numbers a cluster is made from. */
export const NUMBERS_PER_CLUSTER = 160;

type Pick = <T>(...choices: readonly [T, ...T[]]) => T;

/** The cluster that some numbers stand for, with everything given out; then some agents fell silent, and that was seen. */
export const clusterFrom = (numbers: readonly number[]): Cluster => {
  const rest = [...numbers];
  const pick: Pick = (...choices) => choices[(rest.shift() ?? 0) % choices.length] ?? choices[0];
  const times = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  const nodes = times(pick(2, 1, 3, 4), (index) => nodeFrom(pick, index));
  const world = worldOf(
    nodes,
    times(2, (index) => gatewayFrom(pick, index + 1)),
    times(pick(1, 2, 3, 4, 5, 6, 7), (index) => policyFrom(pick, index)),
  );
  world.namespaces.set('red', { metadata: { name: 'red', labels: { team: 'a' } } });
  const ranges = {
    podCIDR: { ipv4: ['10.244.0.0/16'], ipv6: ['fd44::/32'] },
    clusterIP: { ipv4: ['10.96.0.0/12'], ipv6: ['fd96::/108'] },
    nodeIP: { ipv4: ['192.0.2.0/24'], ipv6: ['2001:db8:1::/64'] },
  };
  world.clusterInfo = { metadata: { name: 'default' }, status: { egressIgnoreCIDR: ranges } };
  step(world);
  const names = nodes.map(({ metadata }) => metadata.name);
  for (const name of names) if (pick(false, false, true)) world.silent.add(name);
  step(world);
  const sources = times(pick(1, 2, 3, 4), (index) => sourcesFrom(pick, index, names)).flat();
  return { world, view: viewOf(world), sources };
};

const ofFamilies = (pick: Pick, ipv4: string, ipv6: string): string[] =>
  pick([ipv4, ipv6], [ipv4, ipv6], [ipv4], [ipv6]);

const nodeFrom = (pick: Pick, index: number) =>
  nodeObject(
    `n${index + 1}`,
    ofFamilies(pick, `192.0.2.${index + 1}`, `2001:db8:1::${index + 1}`),
    pick<Record<string, string>>({ egress: 'true' }, { egress: 'true' }, {}),
  );

const gatewayFrom = (pick: Pick, number: number) => {
  const size = pick(1, 2, 3);
  const pools = ofFamilies(
    pick,
    `10.6.${number}.1-10.6.${number}.${size}`,
    `fd06:${number}::1-fd06:${number}::${size}`,
  );
  return gatewayObject(`g${number}`, {
    ipv4: pools.filter((range) => !range.includes(':')),
    ipv6: pools.filter((range) => range.includes(':')),
  });
};

const policyFrom = (pick: Pick, index: number) => {
  const prefix = pick('red/', '', 'blue/');
  const appliedTo = pick<object>(
    { podSelector: { matchLabels: { app: 'shop' } } },
    { podSelector: { matchLabels: { app: 'web' } } },
    { podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
    { podSubnet: ['10.244.1.0/24'] },
    { podSubnet: ['10.244.1.5-10.244.2.20', 'fd44::/120'] },
    { podSubnet: ['fd44::/64'] },
  );
  const namespaces = pick<object>({}, {}, { namespaceSelector: { matchLabels: { team: 'a' } } });
  const shape: PolicyShape = {
    at: index,
    appliedTo: { ...appliedTo, ...(prefix === '' ? namespaces : {}) },
    gateway: pick('g1', 'g2', 'g1', 'missing'),
    priority: pick(0, 1, 2),
    useNodeIP: pick(false, false, true),
    allocator: pick('default', 'rr'),
    onUnavailable: pick('Drop', 'NodeIP'),
    destSubnet: pick<readonly string[]>(
      [],
      ['198.51.100.0/24'],
      [],
      ['198.51.100.7-198.51.100.9', '2001:db8::/64'],
      ['10.244.0.0/16', '2001:db8::8'],
      ['169.254.169.254', 'fe80::/10', '224.0.0.0/4'],
      ['0.0.0.0/0', '::/0'],
    ),
    exceptSubnet: pick<readonly string[]>(
      [],
      ['198.51.100.8', '2001:db8::/127'],
      ['198.51.100.0/25'],
      ['8.0.0.0/8', '2606::/16'],
    ),
  };
  return policyObject(`${prefix}p${index}`, shape);
};

const sourcesFrom = (pick: Pick, index: number, nodes: readonly string[]): readonly Source[] => {
  const node = nodes[pick(0, 1, 2, 3) % nodes.length] ?? '';
  const subnet = pick(1, 2, 3);
  const number = pick(7, 1, 4, 5, 20) + index * 25;
  const ips = ofFamilies(pick, `10.244.${subnet}.${number}`, `fd44::${subnet}:${number.toString(16)}`);
  if (pick(true, true, false)) {
    const labels = pick<Record<string, string>>({ app: 'shop' }, { app: 'web' }, {});
    return [{ pod: podOn(node, `${pick('red', 'blue')}/pod-${index}`, ips, labels), isKnown: true }];
  }
  return ips.map((ip) => ({ pod: podOn(node, `nowhere/${ip}`, [ip]), isKnown: false }));
};

/** The pods that agents know. */
export const knownPods = ({ sources }: Cluster): readonly PodView[] =>
  sources.filter(({ isKnown }) => isKnown).map(({ pod }) => pod);

/** Destinations on both sides of every edge that the policies and ranges above have. */
export const destinations: readonly string[] = [
  ...['198.51.100.7', '198.51.100.8', '198.51.100.200', '203.0.113.5', '8.8.8.8', '0.1.2.3', '255.255.255.255'],
  ...['10.244.1.7', '10.244.9.9', '10.96.0.10', '192.0.2.1', '192.0.2.3', '169.254.169.254', '127.0.0.1', '224.0.0.5'],
  ...['2001:db8::7', '2001:db8::8', '2001:db8:f::1', '2606:4700::1', 'fd44::7', 'fd96::a', 'fe80::1', 'ff02::1', '::1'],
];
