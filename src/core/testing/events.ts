/** Random events on a World: what users, nodes and agents can do to a cluster. Not shipped. */
import { PolicyStatus } from '../../api/policy.ts';
import { readStatus } from '../project/api-object.ts';
import type { ApiObject } from '../project/index.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, putPolicy } from './objects.ts';
import { takeOver, type World } from './world.ts';

/** Something that happens to one object; `at` comes from the place of the event in its sequence. */
export type Event =
  | { readonly kind: 'policy'; readonly key: string; readonly shape: PolicyShape }
  | { readonly kind: 'dropPolicy'; readonly key: string }
  | { readonly kind: 'gateway'; readonly name: string; readonly shape: GatewayChoice }
  | { readonly kind: 'dropGateway'; readonly name: string }
  | { readonly kind: 'node'; readonly name: string; readonly isReady: boolean; readonly labels: Record<string, string> }
  | { readonly kind: 'dropNode'; readonly name: string }
  | { readonly kind: 'silence'; readonly name: string; readonly isSilent: boolean }
  | { readonly kind: 'namespace'; readonly name: string; readonly labels: Record<string, string> }
  /** A node takes over the EIP of a policy, if it has one. */
  | { readonly kind: 'takeOver'; readonly key: string; readonly name: string };

/** A gateway as numbers, so that the reference of a test knows its pool without reading address text. */
export interface GatewayChoice {
  /** Last numbers of the addresses, see eip4 and eip6. */
  readonly numbers: readonly number[];
  /** Whether the addresses come from a subnet that other gateways may use too, so that pools overlap. */
  readonly isShared: boolean;
  readonly families: 'ipv4' | 'ipv6' | 'both';
  readonly hasDefault: boolean;
  readonly policy: string;
  readonly limit: number;
  readonly eipLimit: number;
  readonly clusterDefault: boolean;
  readonly selector: object;
  readonly allowedNamespaces?: object;
}

const nodeNames = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'] as const;
const gatewayNames = ['g1', 'g2', 'g3'] as const;
const namespaceNames = ['red', 'blue'] as const;
const addressNumbers = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const;
const policyKeys = [
  'red/p0',
  ...Array.from({ length: 8 }, (_, index) => [`red/p${index}`, `blue/p${index}`, `c${index}`]).flat(),
] as const satisfies [string, ...string[]];

/** Each kind as often as it should happen. */
const kinds = [
  ...(['policy', 'policy', 'policy', 'policy', 'policy', 'policy', 'dropPolicy', 'dropPolicy'] as const),
  ...(['node', 'node', 'node', 'dropNode', 'silence', 'silence'] as const),
  ...(['gateway', 'gateway', 'dropGateway', 'namespace', 'takeOver', 'takeOver', 'takeOver'] as const),
] as const;

/** How many numbers an event is made from. */
export const NUMBERS_PER_EVENT = 14;

/**
 * The event that some numbers stand for. Tests draw the numbers with fast-check; smaller numbers stand for simpler
 * events, so that a history that fails shrinks to a short one of simple events.
 */
export const eventFrom = (numbers: readonly number[]): Event => {
  const rest = [...numbers];
  const pick = <T>(choices: readonly [T, ...T[]]): T => choices[(rest.shift() ?? 0) % choices.length] ?? choices[0];
  const kind = pick(kinds);
  switch (kind) {
    case 'policy':
      return { kind, key: pick(policyKeys), shape: policyShape(pick) };
    case 'dropPolicy':
      return { kind, key: pick(policyKeys) };
    case 'gateway':
      return { kind, name: pick(gatewayNames), shape: gatewayChoice(pick) };
    case 'dropGateway':
      return { kind, name: pick(gatewayNames) };
    case 'node': {
      const labels = pick<Record<string, string>>([{ egress: 'true' }, { egress: 'true', zone: 'a' }, {}]);
      return { kind, name: pick(nodeNames), isReady: pick([true, true, false]), labels };
    }
    case 'dropNode':
      return { kind, name: pick(nodeNames) };
    case 'silence':
      return { kind, name: pick(nodeNames), isSilent: pick([false, true]) };
    case 'takeOver':
      return { kind, key: pick(policyKeys), name: pick(nodeNames) };
    case 'namespace': {
      const labels = pick<Record<string, string>>([{}, { 'spidernet.io/egressgateway-default': 'g2' }]);
      return { kind, name: pick(namespaceNames), labels };
    }
    default:
      return kind satisfies never;
  }
};

type Pick = <T>(choices: readonly [T, ...T[]]) => T;

const policyShape = (pick: Pick): PolicyShape => ({
  ...addressShape(pick),
  gateway: pick(['g1', 'g2', 'g3', 'g1', 'g2', 'g3', '', 'missing']),
  priority: pick([0, 1, 2]),
  appliedTo: { podSelector: { matchLabels: { app: pick(['shop', 'web']) } } },
  destSubnet: pick<readonly string[]>([[], ['198.51.100.0/24'], ['198.51.100.7', '2001:db8::/32']]),
  onUnavailable: pick(['Drop', 'NodeIP']),
});

const addressShape = (pick: Pick): PolicyShape => {
  const request = pick(['default', 'rr', 'random', 'limit', 'rr', 'default', 'nodeIp', 'ipv4', 'ipv6', 'both']);
  if (request === 'nodeIp') return { useNodeIP: true };
  if (request !== 'ipv4' && request !== 'ipv6' && request !== 'both') return { allocator: request };
  const subnet = pick(['g1', 'g2', 'g3', 'shared']);
  return {
    ...(request === 'ipv6' ? {} : { ipv4: eip4(subnet, pick(addressNumbers)) }),
    ...(request === 'ipv4' ? {} : { ipv6: eip6(subnet, pick(addressNumbers)) }),
  };
};

const gatewayChoice = (pick: Pick): GatewayChoice => {
  const first = pick(addressNumbers);
  const many = pick([2, 1, 3, 4, 5, 6, 0]);
  return {
    numbers: Array.from({ length: many }, (_, index) => ((first + index - 1) % 9) + 1),
    isShared: pick([false, false, false, true]),
    families: pick(['ipv4', 'both', 'both', 'ipv6']),
    hasDefault: pick([false, true]),
    policy: pick(['average', 'minimum', 'limit', 'average', 'nonsense']),
    limit: pick([1, 2, 3, 4]),
    eipLimit: pick([1, 2, 3]),
    clusterDefault: pick([false, true]),
    selector: pick<object>([
      { matchLabels: { egress: 'true' } },
      { matchLabels: { egress: 'true' } },
      { matchLabels: { zone: 'a' } },
      { matchLabels: { 'not a key': 'x' } },
    ]),
    allowedNamespaces: pick<object>([{ names: ['red', 'blue'] }, { names: ['red', 'blue'] }, { names: ['red'] }]),
  };
};

/** The address that a number stands for in the subnet of a gateway, or in the shared one. */
const eip4 = (subnet: string, number: number): string => `10.6.${subnetNumber(subnet)}.${number}`;
const eip6 = (subnet: string, number: number): string => `fd06:${subnetNumber(subnet)}::${number.toString(16)}`;
/** How the addresses begin that several gateways may have. */
export const sharedSubnets = ['10.6.9.', 'fd06:9:'];

const subnetNumber = (subnet: string): string => (subnet === 'shared' ? '9' : subnet.slice(1));

/** Lets an event happen. Objects that are edited keep their creation time, uid and status, as on an API server. */
export const happen = (world: World, event: Event, at: number): void => {
  switch (event.kind) {
    case 'policy': {
      const existing = world.policies.get(event.key);
      const made = policyObject(event.key, { ...event.shape, at: Math.floor(at / 3), uid: `uid-${event.key}-${at}` });
      putPolicy(world, existing === undefined ? made : { ...made, metadata: existing.metadata });
      return;
    }
    case 'dropPolicy':
      world.policies.delete(event.key);
      return;
    case 'gateway': {
      const existing = world.gateways.get(event.name);
      const made = gatewayOf(event.name, event.shape, at);
      world.gateways.set(event.name, existing === undefined ? made : { ...existing, spec: made.spec });
      return;
    }
    case 'dropGateway':
      world.gateways.delete(event.name);
      return;
    case 'node': {
      const addresses = [`192.0.2.${event.name.slice(1)}`, `2001:db8:1::${event.name.slice(1)}`];
      world.nodes.set(event.name, nodeObject(event.name, addresses, event.labels, event.isReady));
      return;
    }
    case 'dropNode':
      world.nodes.delete(event.name);
      return;
    case 'silence':
      if (event.isSilent) world.silent.add(event.name);
      else world.silent.delete(event.name);
      return;
    case 'namespace':
      world.namespaces.set(event.name, { metadata: { name: event.name, labels: event.labels } });
      return;
    case 'takeOver':
      takeOver(world, event.name, eipIn(world, event.key));
      return;
    default:
      event satisfies never;
  }
};

/** The addresses that the status of a policy records. */
const eipIn = (world: World, key: string): readonly string[] => {
  const policy = world.policies.get(key);
  const { ipv4, ipv6 } = (policy && readStatus(PolicyStatus, policy)?.eip) ?? {};
  return [ipv4, ipv6].filter((ip) => ip !== undefined && ip !== '').map(String);
};

const gatewayOf = (name: string, choice: GatewayChoice, at: number): ApiObject => {
  const { numbers, isShared, families, hasDefault, ...shape } = choice;
  const [first] = numbers;
  const subnet = isShared ? 'shared' : name;
  const ipv4 = families === 'ipv6' ? [] : numbers.map((number) => eip4(subnet, number));
  const ipv6 = families === 'ipv4' ? [] : numbers.map((number) => eip6(subnet, number));
  return gatewayObject(name, {
    ...shape,
    at,
    ipv4,
    ipv6,
    ...(hasDefault && first !== undefined && ipv4.length > 0 ? { default4: eip4(subnet, first) } : {}),
    ...(hasDefault && first !== undefined && ipv6.length > 0 ? { default6: eip6(subnet, first) } : {}),
  });
};
