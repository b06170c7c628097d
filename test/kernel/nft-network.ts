/**
 * The smallest network in which packets meet every rule of the table: a pod, its worker, a gateway node, and the outside,
 * each a network namespace. The outside is also the wire between the nodes. It has no route to the pod, so a packet that
 * leaves with the address of the pod gets no answer; and it notes every source that it sees.
 *
 *   pod 10.244.1.2 -- worker 10.9.0.11 --.
 *                                        +-- outside 10.9.0.200
 *   EIP 10.9.0.100 -- gateway 10.9.0.12 -'
 */
import type { Nftables } from '../../src/dataplane/nft/nftables.ts';
import { type Namespace, openNamespace } from './namespace.ts';
import { type KernelMachine, openKernelMachine } from './nft-machine.ts';

/** The addresses of one family. */
export const addresses = {
  4: { pod: '10.244.1.2', worker: '10.9.0.11', gateway: '10.9.0.12', eip: '10.9.0.100', outside: '10.9.0.200' },
  6: { pod: 'fd44:1::2', worker: 'fd09::11', gateway: 'fd09::12', eip: 'fd09::e:100', outside: 'fd09::200' },
} as const;

export const DEVICE = 'egw0';
export const macs = { worker: '66:00:00:00:00:11', gateway: '66:00:00:00:00:12' } as const;

export interface Network extends AsyncDisposable {
  readonly pod: Namespace;
  readonly worker: Namespace;
  readonly gateway: Namespace;
  readonly outside: Namespace;
  readonly workerTable: Nftables;
  readonly gatewayTable: Nftables;
  /** Every source address that the outside has seen since the last call, without those of the nodes' own talk. */
  sources(): Promise<readonly string[]>;
  /** Pings once from the pod with more arguments; true if an answer came. */
  ping(...args: readonly string[]): Promise<boolean>;
}

/** Builds the network. The nodes have devices, routes and a masquerade of somebody else, but no table of ours. */
export const openNetwork = async (label: string): Promise<Network> => {
  const machines: KernelMachine[] = [];
  const opened: Namespace[] = [];
  const close = async (): Promise<void> => {
    for (const namespace of opened) await namespace.close();
  };
  try {
    for (const name of ['worker', 'gateway']) {
      const machine = await openKernelMachine(`${label}-${name}`);
      machines.push(machine);
      opened.push(machine.namespace);
    }
    const [workerMachine, gatewayMachine] = machines;
    if (workerMachine === undefined || gatewayMachine === undefined) throw new Error('no machines');
    const pod = await openNamespace(`${label}-pod`);
    opened.push(pod);
    const outside = await openNamespace(`${label}-outside`);
    opened.push(outside);
    const { namespace: worker } = workerMachine;
    const { namespace: gateway } = gatewayMachine;
    await wire({ pod, worker, gateway, outside });
    return {
      pod,
      worker,
      gateway,
      outside,
      workerTable: workerMachine.start(),
      gatewayTable: gatewayMachine.start(),
      sources: () => takeSources(outside),
      ping: async (...args) => {
        const { code } = await pod.programs.run(['ping', '-n', '-c', '1', '-W', '1', ...args]);
        return code === 0;
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};

type Places = Pick<Network, 'pod' | 'worker' | 'gateway' | 'outside'>;

const wire = async ({ pod, worker, gateway, outside }: Places): Promise<void> => {
  await outside.must('ip', 'link', 'add', 'wire', 'type', 'bridge');
  for (const [name, node] of Object.entries({ worker, gateway })) {
    await outside.must('ip', 'link', 'add', `to-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', node.name);
  }
  await worker.must('ip', 'link', 'add', 'to-pod', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod.name);

  await batch(
    outside,
    ['link set to-worker master wire up', 'link set to-gateway master wire up', 'link set wire up'],
    ['wire', addresses[4].outside, addresses[6].outside],
  );
  await batch(
    pod,
    ['link set eth0 up'],
    ['eth0', addresses[4].pod, addresses[6].pod],
    ['route add default via 10.244.1.1', '-6 route add default via fd44:1::1'],
  );
  await batch(worker, ['link set to-pod up'], ['to-pod', '10.244.1.1', 'fd44:1::1']);
  await node(worker, 'worker', 'gateway', [
    'rule add pref 94 fwmark 0x26010000/0xffff0000 lookup 2601',
    '-6 rule add pref 94 fwmark 0x26010000/0xffff0000 lookup 2601',
    `route add default via 192.200.0.12 dev ${DEVICE} table 2601`,
    `-6 route add default via fd92::12 dev ${DEVICE} table 2601`,
  ]);
  await node(gateway, 'gateway', 'worker', [
    'rule add pref 94 fwmark 0x27000011 lookup 2700017',
    '-6 rule add pref 94 fwmark 0x27000011 lookup 2700017',
    `route add default via 192.200.0.11 dev ${DEVICE} table 2700017`,
    `-6 route add default via fd92::11 dev ${DEVICE} table 2700017`,
    'link add egw-eip type bridge',
    'link set egw-eip up',
    `addr add ${addresses[4].eip}/32 dev egw-eip`,
    `-6 addr add ${addresses[6].eip}/128 dev egw-eip nodad`,
    `-6 neigh add proxy ${addresses[6].eip} dev eth0`,
  ]);
  await settings(gateway, { 'net/ipv6/conf/eth0/proxy_ndp': '1', 'net/ipv6/neigh/eth0/proxy_delay': '0' });
  // What a network plugin does on every node: whatever leaves gets the address of the node.
  await worker.nft(
    'table inet plugin { chain post { type nat hook postrouting priority srcnat; oifname "eth0" masquerade; }; }',
  );
  await outside.nft(`table inet seen {
  set sources4 { type ipv4_addr; flags dynamic; size 1000; }
  set sources6 { type ipv6_addr; flags dynamic; size 1000; }
  chain arrive {
    type filter hook input priority filter;
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, mld2-listener-report } return
    udp dport 7789 return
    update @sources4 { ip saddr }
    update @sources6 { ip6 saddr }
  }
}`);
};

/** The uplink, the tunnel device and the neighbour on it, and what each node needs besides. */
const node = async (
  namespace: Namespace,
  self: 'worker' | 'gateway',
  peer: 'worker' | 'gateway',
  more: readonly string[],
) => {
  const number = (name: 'worker' | 'gateway'): string => (name === 'worker' ? '11' : '12');
  await batch(
    namespace,
    ['link set eth0 up'],
    ['eth0', addresses[4][self], addresses[6][self]],
    [
      'route add default via 10.9.0.200',
      '-6 route add default via fd09::200',
      `link add ${DEVICE} type vxlan id 100 dstport 7789 local ${addresses[4][self]} dev eth0 nolearning gbp`,
      `link set ${DEVICE} address ${macs[self]} mtu 1450 up`,
      `addr add 192.200.0.${number(self)}/16 dev ${DEVICE}`,
      `-6 addr add fd92::${number(self)}/64 dev ${DEVICE} nodad`,
      `neigh add 192.200.0.${number(peer)} lladdr ${macs[peer]} dev ${DEVICE} nud permanent`,
      `-6 neigh add fd92::${number(peer)} lladdr ${macs[peer]} dev ${DEVICE} nud permanent`,
      ...more,
    ],
  );
  await namespace.must('bridge', 'fdb', 'replace', macs[peer], 'dev', DEVICE, 'dst', addresses[4][peer]);
  await settings(namespace, {
    'net/ipv4/ip_forward': '1',
    'net/ipv6/conf/all/forwarding': '1',
    [`net/ipv4/conf/${DEVICE}/rp_filter`]: '2',
  });
};

/** Commands of `ip`, and the addresses of a device between the first and the rest of them. */
const batch = async (
  namespace: Namespace,
  first: readonly string[],
  [device, ipv4, ipv6]: readonly [string, string, string],
  rest: readonly string[] = [],
): Promise<void> => {
  const commands = [
    ...first,
    `addr add ${ipv4}/24 dev ${device}`,
    `-6 addr add ${ipv6}/64 dev ${device} nodad`,
    ...rest,
  ];
  await namespace.ip(...commands);
};

const settings = async (namespace: Namespace, values: Readonly<Record<string, string>>): Promise<void> => {
  for (const [path, value] of Object.entries(values)) await namespace.must('sysctl', '-q', '-w', `${path}=${value}`);
};

const takeSources = async (outside: Namespace): Promise<readonly string[]> => {
  const seen: string[] = [];
  for (const name of ['sources4', 'sources6']) {
    const text = await outside.must('nft', 'list', 'set', 'inet', 'seen', name);
    const elements = /elements = \{ (.*) \}/s.exec(text)?.[1] ?? '';
    seen.push(
      ...elements
        .split(',')
        .map((element) => element.trim())
        .filter((element) => element !== ''),
    );
    await outside.must('nft', 'flush', 'set', 'inet', 'seen', name);
  }
  return seen.sort();
};
