/** The ways that ours is compared with: no gateway at all, and the smallest thing that works. */
import { addresses, podNetwork, type Site } from './site.ts';
import type { Pair } from './workload.ts';

/** A way of leaving the cluster, ready to be measured on its site. */
export interface Way {
  readonly name: string;
  /** Makes the way on a site and returns what the outside must see. */
  build(site: Site): Promise<Seen>;
  /** A share of the packets gives figures as exact where one costs a hundred times as much. */
  readonly isSlow?: true;
}

/** Source addresses as the outside sees them. */
export interface Seen {
  readonly pod: Pair;
  readonly bystander: Pair;
}

/** Pods leave with their own addresses and the outside knows the way back. */
export const direct: Way = {
  name: 'direct',
  build: async (site) => {
    await routePodsFromOutside(site);
    return { pod: addresses.pod, bystander: addresses.bystander };
  },
};

/** Pods leave with the address of their node: what a cluster does without a gateway. */
export const masquerade: Way = {
  name: 'masq',
  build: async (site) => {
    await masqueradePods(site, 'worker');
    return { pod: addresses.worker, bystander: addresses.worker };
  },
};

/**
 * The smallest working gateway: one rule sends one pod into a tunnel, one rule at its end masquerades. No policies, no
 * EIPs, no guards, no connection tracking on the worker, and replies take the plain route to the worker.
 */
export const smallestGateway: Way = {
  name: 'vxmasq',
  build: async (site) => {
    await tunnel(site);
    await sendIntoTunnel(site, { ipv4: ['from', addresses.pod.ipv4], ipv6: ['from', addresses.pod.ipv6] });
    await masqueradePods(site, 'gateway');
    await routePodsFromOutside(site);
    return { pod: addresses.gateway, bystander: addresses.bystander };
  },
};

const tunnelTable = '100';

/** A plain VXLAN between worker and gateway with everything known beforehand, and a table that leads through it. */
export async function tunnel(site: Site): Promise<void> {
  const ends = {
    worker: { mac: '66:00:00:00:00:13', ipv4: '192.200.0.13', ipv6: 'fd92::13' },
    gateway: { mac: '66:00:00:00:00:11', ipv4: '192.200.0.11', ipv6: 'fd92::11' },
  };
  for (const member of ['worker', 'gateway'] as const) {
    const mine = ends[member];
    const peerName = member === 'worker' ? 'gateway' : 'worker';
    const peer = ends[peerName];
    await site.ip(member, [
      `link add vx0 address ${mine.mac} mtu 1450 type vxlan id 100 dstport 7789 local ${addresses[member].ipv4} dev eth0 nolearning`,
      'link set vx0 up',
      `address add ${mine.ipv4}/24 dev vx0`,
      `address add ${mine.ipv6}/64 dev vx0 nodad`,
      `neigh add ${peer.ipv4} lladdr ${peer.mac} dev vx0 nud permanent`,
      `neigh add ${peer.ipv6} lladdr ${peer.mac} dev vx0 nud permanent`,
      `route add default via ${peer.ipv4} dev vx0 table ${tunnelTable}`,
      `route add default via ${peer.ipv6} dev vx0 table ${tunnelTable}`,
    ]);
    await site.run(member, ['bridge', 'fdb', 'add', peer.mac, 'dev', 'vx0', 'dst', addresses[peerName].ipv4]);
  }
}

/** Has the worker send what a selector of `ip rule` means through the tunnel. */
export async function sendIntoTunnel(
  site: Site,
  selector: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] },
): Promise<void> {
  await site.run('worker', ['ip', '-4', 'rule', 'add', ...selector.ipv4, 'lookup', tunnelTable]);
  await site.run('worker', ['ip', '-6', 'rule', 'add', ...selector.ipv6, 'lookup', tunnelTable]);
}

/** What a CNI does for pods that leave the cluster, on one node. */
export async function masqueradePods(site: Site, member: 'worker' | 'gateway'): Promise<void> {
  const rules = `table inet cni {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${podNetwork.ipv4} ip daddr != ${podNetwork.ipv4} masquerade
    ip6 saddr ${podNetwork.ipv6} ip6 daddr != ${podNetwork.ipv6} masquerade
  }
}
`;
  await site.run(member, ['nft', '-f', '-'], rules);
}

const routePodsFromOutside = (site: Site): Promise<void> =>
  site.ip('outside', [
    `route add ${podNetwork.ipv4} via ${addresses.worker.ipv4}`,
    `route add ${podNetwork.ipv6} via ${addresses.worker.ipv6}`,
  ]);
