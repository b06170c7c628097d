/**
 * A site: the small network on which one way of leaving the cluster is measured. Every way has a site of its own and all
 * stand at the same time, so that they can take turns without anything being set up between two measurements.
 *
 *   pod, bystander --veth-- worker --+-- fabric (bridge) --+-- outside
 *                           gateway -+                     (server, has no route to pods unless a way asks for it)
 *
 * Each member is a network namespace; pairs are made inside them, so nothing of the machine's own namespace changes.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { must, run } from '../../lab/host/command.ts';

const members = ['fabric', 'worker', 'gateway', 'outside', 'pod', 'bystander'] as const;
export type Member = (typeof members)[number];

/** The same in every site: they never meet. The subnets leave room for 5,000 EIPs and 50,000 pods. */
export const addresses = {
  worker: { ipv4: '10.6.0.13', ipv6: 'fd06::13' },
  gateway: { ipv4: '10.6.0.11', ipv6: 'fd06::11' },
  outside: { ipv4: '10.6.0.200', ipv6: 'fd06::200' },
  pod: { ipv4: '10.244.255.1', ipv6: 'fd44::255:1' },
  bystander: { ipv4: '10.244.255.2', ipv6: 'fd44::255:2' },
} as const;
export const podNetwork = { ipv4: '10.244.0.0/16', ipv6: 'fd44::/64' } as const;
const nodePrefix = { ipv4: 16, ipv6: 64 } as const;
/** Pods use the MTU of a tunnel from the start, as CNI plugins set it, so that segments are of one size in all ways. */
const podMtu = 1450;
/** The worker's end of every pod's veth, known to the pod beforehand: no neighbour discovery on the measured way. */
const workerMac = 'ee:ee:ee:ee:ee:ee';

export interface Site {
  readonly name: string;
  /** The namespace of a member. */
  namespaceOf(member: Member): string;
  /** Runs a program in the namespace of a member and returns what it printed; throws if it fails. */
  run(member: Member, argv: readonly string[], input?: string): Promise<string>;
  /** Runs the lines of an `ip -batch` script there. */
  ip(member: Member, lines: readonly string[]): Promise<void>;
  /** Removes the namespaces and whatever still runs in them. May be called twice. */
  remove(): Promise<void>;
}

const prefix = 'sallyport-bench-';
const namespaceFolder = '/run/netns';

/** What goes before a command line to run it in a namespace. `ip netns exec` also mounts a /sys, which takes longer. */
export const enter = (namespace: string): readonly string[] => ['nsenter', `--net=${namespacePath(namespace)}`];

/** The file that stands for a namespace. */
export const namespacePath = (namespace: string): string => join(namespaceFolder, namespace);

/** Makes a site without any way out of it. */
export async function makeSite(name: string): Promise<Site> {
  const site = siteNamed(name);
  try {
    for (const member of members) {
      await must(`make the namespace of ${name} ${member}`, ['ip', 'netns', 'add', site.namespaceOf(member)]);
      await site.run(member, ['sysctl', '-qw', ...settingsOf(member)]);
      await site.ip(member, ['link set lo up']);
    }
    // A switch has no firewall. Where the kernel has none for bridges there is no such setting, which -e is for.
    await site.run('fabric', ['sysctl', '-qew', ...switchSettings]);
    await site.ip('fabric', ['link add br0 type bridge forward_delay 0 mcast_snooping 0', 'link set br0 up']);
    for (const member of ['worker', 'gateway', 'outside'] as const) await tieNode(site, member);
    for (const member of ['pod', 'bystander'] as const) await tiePod(site, member);
    await site.ip('gateway', [`route add ${podNetwork.ipv4} via ${addresses.worker.ipv4}`]);
    await site.ip('gateway', [`route add ${podNetwork.ipv6} via ${addresses.worker.ipv6}`]);
    return site;
  } catch (error) {
    await site.remove();
    throw error;
  }
}

/** Removes what benchmarks left behind that were killed: sites whose process is gone. */
export async function removeLeftSites(): Promise<void> {
  for (const name of namespaces()) {
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    if (!isAlive(pid)) await removeNamespace(name);
  }
}

function siteNamed(name: string): Site {
  const namespaceOf = (member: Member) => `${prefix}${process.pid}-${name}-${member}`;
  const runIn = (member: Member, argv: readonly string[], input = '') =>
    must(`${argv[0]} in ${name} ${member}`, [...enter(namespaceOf(member)), ...argv], { input });
  return {
    name,
    namespaceOf,
    run: runIn,
    ip: async (member, lines) => void (await runIn(member, ['ip', '-batch', '-'], `${lines.join('\n')}\n`)),
    remove: async () => {
      const standing = namespaces();
      for (const namespace of members.map(namespaceOf)) {
        if (standing.includes(namespace)) await removeNamespace(namespace);
      }
    },
  };
}

const switchSettings = ['net.bridge.bridge-nf-call-iptables=0', 'net.bridge.bridge-nf-call-ip6tables=0'];

const settingsOf = (member: Member): string[] => [
  'net.ipv6.conf.all.accept_dad=0',
  'net.ipv6.conf.default.accept_dad=0',
  'net.ipv4.conf.all.rp_filter=0',
  'net.ipv4.conf.default.rp_filter=0',
  ...(member === 'worker' || member === 'gateway'
    ? ['net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1', 'net.ipv4.conf.all.send_redirects=0']
    : []),
];

async function tieNode(site: Site, member: 'worker' | 'gateway' | 'outside'): Promise<void> {
  const { ipv4, ipv6 } = addresses[member];
  await site.ip('fabric', [
    `link add ${member} type veth peer name eth0 netns ${site.namespaceOf(member)}`,
    `link set ${member} master br0 up`,
  ]);
  await site.ip(member, [
    'link set eth0 up',
    `address add ${ipv4}/${nodePrefix.ipv4} dev eth0`,
    `address add ${ipv6}/${nodePrefix.ipv6} dev eth0 nodad`,
  ]);
}

async function tiePod(site: Site, member: 'pod' | 'bystander'): Promise<void> {
  const { ipv4, ipv6 } = addresses[member];
  await site.ip('worker', [
    `link add ${member} address ${workerMac} type veth peer name eth0 netns ${site.namespaceOf(member)}`,
    `link set ${member} up`,
    `route add ${ipv4}/32 dev ${member}`,
    `route add ${ipv6}/128 dev ${member}`,
  ]);
  await site.ip(member, [
    `link set eth0 mtu ${podMtu} up`,
    `address add ${ipv4}/32 dev eth0`,
    `address add ${ipv6}/128 dev eth0 nodad`,
    `neigh add 169.254.1.1 lladdr ${workerMac} dev eth0 nud permanent`,
    `neigh add fe80::1 lladdr ${workerMac} dev eth0 nud permanent`,
    'route add 169.254.1.1 dev eth0 scope link',
    'route add default via 169.254.1.1 dev eth0',
    'route add default via fe80::1 dev eth0',
  ]);
}

const namespaces = (): string[] => {
  try {
    return readdirSync(namespaceFolder).filter((name) => name.startsWith(prefix));
  } catch {
    // Nobody has made a namespace on this machine yet.
    return [];
  }
};

async function removeNamespace(namespace: string): Promise<void> {
  const { stdout } = await run(['ip', 'netns', 'pids', namespace]);
  for (const pid of stdout.split('\n').filter(Boolean)) end(Number(pid));
  await run(['ip', 'netns', 'delete', namespace]);
}

const end = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself in this moment.
  }
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
