/**
 * The design that Sallyport started from, as a baseline: iptables and ipset, with a pair of sets and a rule per policy and
 * family on the worker, and a pair of sets and a rule per policy on the gateway. Everything that concerns one policy is
 * one more rule for every packet of the node.
 */
import { sendIntoTunnel, tunnel, type Way } from './baselines.ts';
import { addresses, podNetwork, type Site } from './site.ts';
import { type WorkloadPolicy, workloadOf } from './workload.ts';

type Family = 'ipv4' | 'ipv6';

const eip = { ipv4: '10.6.16.1', ipv6: 'fd06::e:1' } as const;
const gatewayMark = '0x26000b00';
/** Inside the tunnel device a packet carries another mark, or its outer packet would be routed into the tunnel again. */
const tunnelledMark = '0x12000000';

/** The seed's rules for a number of policies that all leave through one gateway node. */
export const seedRules = (policies: number): Way => ({
  name: `seed ${policies}`,
  ...(policies >= 1000 ? { isSlow: true } : {}),
  build: async (site) => {
    const workload = workloadOf(policies);
    await tunnel(site);
    await sendIntoTunnel(site, { ipv4: ['fwmark', gatewayMark], ipv6: ['fwmark', gatewayMark] });
    await holdEip(site);
    for (const member of ['worker', 'gateway'] as const) {
      await site.run(member, ['ipset', 'restore'], setsFor(workload));
      for (const family of ['ipv4', 'ipv6'] as const) {
        const restore = family === 'ipv4' ? 'iptables-restore' : 'ip6tables-restore';
        const rules = (member === 'worker' ? workerRules : gatewayRules)(workload, family);
        await site.run(member, [restore], rulesWith(rules));
      }
    }
    return { pod: eip, bystander: addresses.worker };
  },
});

/** Rules of one node in the two tables that hold any. */
interface NodeRules {
  readonly mangle: readonly string[];
  readonly nat: readonly string[];
}

const setName = (kind: 'src' | 'dst', { name }: WorkloadPolicy, family: Family): string => `${kind}-${family}-${name}`;

/** The script for `ipset restore`. */
export const setsFor = (workload: readonly WorkloadPolicy[]): string => {
  const lines = workload.flatMap((policy) =>
    (['ipv4', 'ipv6'] as const).flatMap((family) => {
      const [source, destination] = [setName('src', policy, family), setName('dst', policy, family)];
      const kind = `hash:net family ${family === 'ipv4' ? 'inet' : 'inet6'}`;
      return [
        `create ${source} ${kind}`,
        ...policy.pods.map((pod) => `add ${source} ${pod[family]}`),
        `create ${destination} ${kind}`,
        ...policy.destinations[family].map((range) => `add ${destination} ${range}`),
      ];
    }),
  );
  return `${lines.join('\n')}\n`;
};

const matchOf = (policy: WorkloadPolicy, family: Family): string =>
  `-m set --match-set ${setName('dst', policy, family)} dst -m set --match-set ${setName('src', policy, family)} src`;

/** The masquerade of a CNI stands in the same table behind the seed's ACCEPT, which would not stop one elsewhere. */
const workerRules = (workload: readonly WorkloadPolicy[], family: Family): NodeRules => ({
  mangle: workload.map(
    (policy) =>
      `-A EGRESSGATEWAY-MARK-REQUEST -m conntrack --ctdir ORIGINAL ${matchOf(policy, family)} -j MARK --set-mark ${gatewayMark}`,
  ),
  nat: [`-A POSTROUTING -s ${podNetwork[family]} ! -d ${podNetwork[family]} -j MASQUERADE`],
});

const gatewayRules = (workload: readonly WorkloadPolicy[], family: Family): NodeRules => ({
  mangle: [],
  nat: workload.map(
    (policy) => `-A EGRESSGATEWAY-SNAT-EIP ${matchOf(policy, family)} -j SNAT --to-source ${eip[family]}`,
  ),
});

/** The script for iptables-restore: the fixed rules of every node around its own. */
const rulesWith = ({ mangle, nat }: NodeRules): string => `*mangle
:EGRESSGATEWAY-MARK-REQUEST - [0:0]
:EGRESSGATEWAY-RESET-MARK - [0:0]
-A PREROUTING -j EGRESSGATEWAY-MARK-REQUEST
-A FORWARD -j EGRESSGATEWAY-RESET-MARK
-A EGRESSGATEWAY-RESET-MARK -m mark --mark 0x26000000/0x26000000 -j MARK --set-mark ${tunnelledMark}
-A POSTROUTING -m mark --mark ${tunnelledMark} -j ACCEPT
${mangle.join('\n')}
COMMIT
*filter
-A FORWARD -m mark --mark ${tunnelledMark} -j ACCEPT
-A OUTPUT -m mark --mark ${tunnelledMark} -j ACCEPT
COMMIT
*nat
:EGRESSGATEWAY-SNAT-EIP - [0:0]
-A POSTROUTING -j EGRESSGATEWAY-SNAT-EIP
-A POSTROUTING -m mark --mark ${tunnelledMark} -j ACCEPT
${nat.join('\n')}
COMMIT
`;

/** The EIP of the gateway. The seed says nothing of neighbour discovery, without which nobody answers for the IPv6 one. */
const holdEip = async (site: Site): Promise<void> => {
  await site.run('gateway', ['sysctl', '-qw', 'net.ipv6.conf.eth0.proxy_ndp=1']);
  await site.ip('gateway', [
    'link add eip type bridge',
    'link set eip up',
    `address add ${eip.ipv4}/32 dev eip`,
    `address add ${eip.ipv6}/128 dev eip nodad`,
    `neigh add proxy ${eip.ipv6} dev eth0`,
  ]);
};
