/**
 * Random rounds for the lab: which labels its pods have, and which policies there are. Every kind of every field is drawn,
 * also what must not work (no gateway node, no address of a family), and what belongs together is drawn together: an
 * address that is asked for is in the pool of the gateway.
 */
import fc from 'fast-check';
import type { Pair } from './egress-world.ts';

/** What changes from one round to the next. Policies that are not named are deleted. */
export interface Round {
  /** One for each pod. */
  readonly labels: readonly Labels[];
  readonly policies: readonly ChancePolicy[];
}

/** Labels of a pod; null takes one away. */
export interface Labels {
  readonly role: string | null;
  readonly tier: string | null;
}

/** A policy: `namespace/name`, or `name` for a cluster policy. */
export interface ChancePolicy {
  readonly key: string;
  readonly spec: object;
}

/** Namespaces of pods and policies; each has its name as a label. */
export const namespaces = ['shop', 'bank'] as const;

/** A gateway by which labels select its nodes, and its addresses: `count` from `first` on. */
interface Gateway {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly first?: number;
  readonly families: readonly (keyof Pair)[];
}
const poolSize = 8;
/** One on both gateway nodes, one without IPv6, one on a worker, one without nodes, one without addresses. */
export const gateways: readonly Gateway[] = [
  { name: 'main', labels: { egress: 'true' }, first: 100, families: ['ipv4', 'ipv6'] },
  { name: 'four', labels: { egress: 'true' }, first: 110, families: ['ipv4'] },
  { name: 'worker', labels: { 'kubernetes.io/hostname': 'worker-1' }, first: 120, families: ['ipv4', 'ipv6'] },
  { name: 'nowhere', labels: { egress: 'nobody' }, first: 130, families: ['ipv4', 'ipv6'] },
  { name: 'bare', labels: { egress: 'true' }, families: [] },
];

/** The pools of a gateway: the same digits in both families, eight addresses of each. */
export const poolsOf = ({ first, families }: Gateway): Partial<Record<keyof Pair, string[]>> => {
  if (first === undefined) return {};
  const all = Array.from({ length: poolSize }, (_, index) => first + index);
  return Object.fromEntries(families.map((family) => [family, all.map((number) => addressOf(family, number))]));
};

const addressOf = (family: keyof Pair, number: number): string =>
  family === 'ipv4' ? `10.77.0.${number}` : `fd77::${number}`;

/** Entries on both sides of every edge between the addresses of the outside servers; see lab/cluster/shape.ts. */
const destinations: readonly string[] = [
  ...['198.51.100.10', '198.51.100.77', '203.0.113.11', '192.0.2.10'],
  ...['198.51.100.0/24', '198.51.100.8/30', '203.0.113.10/31', '0.0.0.0/0'],
  ...['198.51.100.11-198.51.100.77', '203.0.113.0-203.0.113.10', '192.0.0.0-198.51.100.10'],
  ...['2001:db8:51::10', '2001:db8:51::77', '2001:db8:113::11', '2001:db8:2::10'],
  ...['2001:db8:51::/64', '2001:db8:51::10/127', '2001:db8:113::/48', '::/0'],
  ...['2001:db8:51::11-2001:db8:51::77', '2001:db8:113::-2001:db8:113::10', '2001:db8:2::-2001:db8:51::10'],
];

/** Rounds for the pods that have these addresses. */
export const roundsFor = (pods: readonly Pair[]): fc.Arbitrary<Round> =>
  fc.record({
    labels: fc.array(labels, { minLength: pods.length, maxLength: pods.length }),
    policies: fc.uniqueArray(policyFor(pods), { minLength: 1, maxLength: 7, selector: ({ key }) => key }),
  });

const labels: fc.Arbitrary<Labels> = fc.record({
  role: fc.constantFrom('web', 'db', null),
  tier: fc.constantFrom('gold', null, null),
});

const podSelector = fc.constantFrom<object>(
  { matchLabels: { role: 'web' } },
  { matchLabels: { role: 'db' } },
  { matchLabels: { role: 'web', tier: 'gold' } },
  { matchExpressions: [{ key: 'role', operator: 'In', values: ['web', 'db'] }] },
  { matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] },
  { matchExpressions: [{ key: 'role', operator: 'NotIn', values: ['web'] }] },
);

const policyFor = (pods: readonly Pair[]): fc.Arbitrary<ChancePolicy> => {
  const addresses = pods.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
  const podEntry = fc.oneof(
    fc.constantFrom(...addresses),
    fc.constantFrom(...addresses).map((address) => `${address}-${address}`),
    fc.constantFrom(...addresses).map((address) => `${address}/${address.includes(':') ? 127 : 31}`),
    fc.constantFrom('10.244.1.0/24', '10.244.3.0/24', 'fd44:0:0:2::/64', 'fd44:0:0:4::/64'),
    fc.constantFrom('10.244.2.0-10.244.4.200', 'fd44:0:0:1::-fd44:0:0:3::ffff'),
  );
  const podSubnet = fc.uniqueArray(podEntry, { minLength: 1, maxLength: 4 });
  const byPods = fc.oneof(
    podSelector.map((selector) => ({ podSelector: selector })),
    podSubnet.map((subnet) => ({ podSubnet: subnet })),
  );
  const namespaceSelector = fc.constantFrom(...namespaces).map((name) => ({ matchLabels: { name } }));
  const byNamespaces = fc.oneof(
    byPods,
    fc.constant({ podSelector: {} }),
    fc.tuple(byPods, namespaceSelector).map(([pods, selector]) => ({ ...pods, namespaceSelector: selector })),
  );
  const name = fc.integer({ min: 0, max: 5 }).map((number) => `p${number}`);
  const common = fc.tuple(throughGateway, where);
  return fc.oneof(
    fc
      .tuple(fc.constantFrom(...namespaces), name, byPods, common)
      .map(([namespace, own, appliedTo, [through, rest]]) => ({
        key: `${namespace}/${own}`,
        spec: { ...through, ...rest, appliedTo },
      })),
    fc
      .tuple(name, byNamespaces, common)
      .map(([own, appliedTo, [through, rest]]) => ({ key: own, spec: { ...through, ...rest, appliedTo } })),
  );
};

/** A gateway, and an address that it has: one of its own choice, the node's, or a named one of either or both families. */
const throughGateway: fc.Arbitrary<object> = fc
  .oneof(...gateways.map((gateway, index) => ({ weight: index === 0 ? 3 : 2, arbitrary: fc.constant(gateway) })))
  .chain((gateway) => {
    const { name, first, families } = gateway;
    const useNodeIP = fc.constant<object>({ useNodeIP: true });
    const named = fc
      .tuple(fc.nat({ max: 3 }), fc.subarray([...families], { minLength: Math.min(1, families.length) }))
      .map(([at, which]) => Object.fromEntries(which.map((family) => [family, addressOf(family, (first ?? 0) + at)])));
    const chosen = fc.constantFrom('default', 'rr', 'random', 'limit').map((allocatorPolicy) => ({ allocatorPolicy }));
    const egressIP = first === undefined ? useNodeIP : fc.oneof(chosen, named, named, useNodeIP);
    return egressIP.map((ip) => ({ egressGatewayName: name, egressIP: ip }));
  });

const where: fc.Arbitrary<object> = fc
  .record({
    destSubnet: fc.oneof(fc.constant([]), fc.uniqueArray(fc.constantFrom(...destinations), { maxLength: 5 })),
    exceptSubnet: fc.oneof(fc.constant([]), fc.uniqueArray(fc.constantFrom(...destinations), { maxLength: 3 })),
    priority: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
    onUnavailable: fc.constantFrom('Drop', 'Drop', 'NodeIP'),
  })
  .map(({ priority, ...rest }) => (priority === undefined ? rest : { ...rest, priority }));
