import { addresses, type Family, type LabNode, type LabShape, outsideAddresses } from '../cluster/shape.ts';
import { must } from '../host/command.ts';
import type { Instance } from '../host/instance.ts';
import { addNamespace, namespaceName, removeNamespace } from './namespaces.ts';

/**
 * The fabric is the wire of the lab: a bridge in a namespace of its own, to which every member is tied by a veth pair.
 * Pairs are made inside these namespaces, so nothing of the machine's own namespace changes.
 */
export const fabric = 'fabric';
const prefixLength = { ipv4: 24, ipv6: 64 } as const;
const nodad = { ipv4: '', ipv6: ' nodad' } as const;

/** A member of the fabric with its addresses in the node network. */
export interface Member {
  readonly name: string;
  readonly ipv4: string;
  readonly ipv6: string;
}

export const controlPlane: Member = { name: 'control-plane', ...addresses.controlPlane };
export const outside: Member = { name: 'outside', ...addresses.router };

/** Makes the bridge. */
export async function addFabric(instance: Instance): Promise<void> {
  await addNamespace(instance, fabric);
  await ipBatch(instance, fabric, [
    'link add br0 type bridge',
    // Every member is one station of the bridge; learning is enough, no spanning tree, no waiting.
    'link set br0 type bridge stp_state 0 forward_delay 0',
    'link set br0 up',
  ]);
}

/** Makes the namespace of a member and ties it to the bridge. */
export async function addMember(instance: Instance, member: Member, families: readonly Family[]): Promise<void> {
  await addNamespace(instance, member.name);
  await sysctl(instance, member.name, {
    // Addresses are ours by construction: no waiting for duplicate address detection.
    'net.ipv6.conf.all.accept_dad': '0',
    'net.ipv6.conf.default.accept_dad': '0',
    'net.ipv4.ip_forward': '1',
    'net.ipv6.conf.all.forwarding': '1',
  });
  await ipBatch(instance, fabric, [
    `link add ${member.name} type veth peer name eth0 netns ${namespaceName(instance, member.name)}`,
    `link set ${member.name} master br0 up`,
  ]);
  await ipBatch(instance, member.name, [
    'link set eth0 up',
    ...families.map((family) => `address add ${member[family]}/${prefixLength[family]} dev eth0${nodad[family]}`),
  ]);
}

/** The world outside: its own addresses behind the router. It has no route to pods, as a data centre has none. */
export async function addOutside(instance: Instance, families: readonly Family[]): Promise<void> {
  await addMember(instance, outside, families);
  const commands = outsideAddresses.flatMap(({ ipv4, ipv6 }) => [
    `address add ${ipv4}/32 dev lo`,
    `address add ${ipv6}/128 dev lo nodad`,
  ]);
  await ipBatch(instance, outside.name, commands);
}

/** Gives a member the routes of a cluster network without overlay: the pods of every node, and the way out. */
export async function addRoutes(instance: Instance, member: Member, shape: LabShape): Promise<void> {
  const others = shape.nodes.filter((node) => node.name !== member.name);
  await ipBatch(instance, member.name, [
    ...shape.families.flatMap((family) => [
      `route add default via ${addresses.router[family]}`,
      ...others.map((node) => `route add ${node.podCidr[family]} via ${node[family]}`),
    ]),
  ]);
}

/** What a CNI does for pods that leave the cluster: they go out with the node's address. One rule, not one per pod. */
export async function addMasquerade(instance: Instance, node: LabNode): Promise<void> {
  const { nodeNetwork, podNetwork } = addresses;
  const script = `table inet lab-cni {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${podNetwork.ipv4} ip daddr != { ${podNetwork.ipv4}, ${nodeNetwork.ipv4} } masquerade
    ip6 saddr ${podNetwork.ipv6} ip6 daddr != { ${podNetwork.ipv6}, ${nodeNetwork.ipv6} } masquerade
  }
}
`;
  await must(`masquerade pods of ${node.name}`, inNamespace(instance, node.name, ['nft', '-f', '-']), {
    input: script,
  });
}

/** Pulls or plugs the cable of a member, at the bridge: the member keeps its addresses and routes, as a machine would. */
export async function setCable(instance: Instance, member: string, state: 'up' | 'down'): Promise<void> {
  await ipBatch(instance, fabric, [`link set ${member} ${state}`]);
}

/** Forgets a member with all its kernel state; the cable goes with it. */
export async function removeMember(instance: Instance, member: string): Promise<void> {
  await must(`unplug ${member}`, ['ip', '-n', namespaceName(instance, fabric), 'link', 'delete', member]);
  await removeNamespace(instance, member);
}

/** The command line that runs a program in the namespace of a member. */
export function inNamespace(instance: Instance, member: string, argv: readonly string[]): string[] {
  return ['ip', 'netns', 'exec', namespaceName(instance, member), ...argv];
}

async function ipBatch(instance: Instance, member: string, lines: readonly string[]): Promise<void> {
  const argv = ['ip', '-n', namespaceName(instance, member), '-batch', '-'];
  await must(`set up the network of ${member}`, argv, { input: `${lines.join('\n')}\n` });
}

async function sysctl(instance: Instance, member: string, values: Readonly<Record<string, string>>): Promise<void> {
  const script = Object.entries(values).map(([key, value]) => `echo ${value} > /proc/sys/${key.replaceAll('.', '/')}`);
  await must(`set sysctls of ${member}`, inNamespace(instance, member, ['sh', '-ec', script.join('\n')]));
}
