/** What nodes of a small cluster should hold, as whole texts; and what a node holds when something is missing. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { finding } from '../cluster/finding.ts';
import type { ClusterView } from '../cluster/view.ts';
import { desiredText } from '../testing/desired-text.ts';
import { nodeInput, nodeSettings } from '../testing/nodes.ts';
import { desiredOf, hostOf, problemsOf, smallCluster, smallPods } from '../testing/small-cluster.ts';
import type { NodeDesired } from './desired.ts';
import { createNodePlanner } from './desired-for.ts';
import type { NodeInput } from './input.ts';

/** What new connections of the pod 10.244.1.7 to anywhere get. */
const verdictOf = ({ table }: NodeDesired, family: 4 | 6 = 4): string | undefined => {
  const { pod4, dflt4, dflt6 } = table.elements;
  return (family === 4 ? dflt4 : dflt6).get(pod4.get('10.244.1.7') ?? '');
};
const DROPPED = '0x26000000';
const LEFT_ALONE = '0x24000000';

describe('a small cluster', () => {
  const view = smallCluster({
    'red/all': { exceptSubnet: ['198.51.100.0/24'], priority: 2 },
    'red/some': { destSubnet: ['203.0.113.0/24', '203.0.113.0-203.0.114.9', '2001:db8:f::/64'], priority: 1 },
    'red/node': { useNodeIP: true, destSubnet: ['8.8.8.8'], priority: 1 },
    everybody: { appliedTo: { podSubnet: ['10.244.0.0/16', 'fd44::/64'] }, onUnavailable: 'NodeIP', priority: 3 },
  });
  for (const node of ['w', 'a', 'b']) {
    it(`makes node ${node} hold what its file says`, (t) => {
      t.assert.fileSnapshot(desiredText(desiredOf(view, node)), join(import.meta.dirname, 'golden', `${node}.txt`), {
        serializers: [String],
      });
    });
  }
});

describe('a node that lacks something', () => {
  const drop = smallCluster({ 'red/p': {} });
  const nodeIp = smallCluster({ 'red/p': { onUnavailable: 'NodeIP' } });
  const without = (view: ClusterView, node: string): Partial<NodeInput> => ({
    tunnels: view.tunnels.filter((tunnel) => tunnel.node !== node),
  });
  const gone = finding('ParentInterfaceMissing', 'Interface eth7 does not exist.');

  const lacks: readonly [string, (view: ClusterView) => Partial<NodeInput>, string][] = [
    ['a tunnel address', (view) => without(view, 'w'), 'TunnelAddressMissing'],
    [
      'a parent interface',
      () => ({ host: { parent: { finding: gone }, interfaces: [], defaults: [] } }),
      'ParentInterfaceMissing',
    ],
    [
      'an address of the parent interface',
      (view) => ({ host: hostOf(view, 'w', { ipv4: undefined, ipv6: undefined }) }),
      'ParentAddressMissing',
    ],
    ['room for IPv6', (view) => ({ host: hostOf(view, 'w', { mtu: 1329 }) }), 'TunnelTooNarrow'],
  ];
  for (const [what, over, reason] of lacks) {
    it(`has no tunnel without ${what}, and says so once; policies do what they say for that case`, () => {
      const desired = desiredOf(drop, 'w', over(drop));
      assert.deepEqual(problemsOf(desired), [`node: ${reason}`]);
      const { links, rules, routes, neighbours, forwardings } = desired.network;
      assert.deepEqual([links, rules, routes, neighbours, forwardings], [[], [], [], [], []]);
      assert.deepEqual([verdictOf(desired), verdictOf(desired, 6)], [DROPPED, DROPPED]);
      assert.equal(desired.table.elements.slot_fwd.size, 0);
      assert.equal(verdictOf(desiredOf(nodeIp, 'w', over(nodeIp))), LEFT_ALONE);
    });
  }

  it('has room for IPv6 with one byte more', () => {
    assert.deepEqual(problemsOf(desiredOf(drop, 'w', { host: hostOf(drop, 'w', { mtu: 1330 }) })), []);
  });

  it('drops for a policy without a status, and leaves alone for one that says NodeIP', () => {
    const unwritten = (view: ClusterView): Partial<NodeInput> => ({
      policies: view.policies.map((policy) => ({ ...policy, recorded: { ...policy.recorded, node: undefined } })),
    });
    assert.equal(verdictOf(desiredOf(drop, 'w', unwritten(drop))), DROPPED);
    assert.equal(verdictOf(desiredOf(nodeIp, 'w', unwritten(nodeIp))), LEFT_ALONE);
  });

  it('drops for a gateway node whose tunnel is not known, and names it', () => {
    const [policy] = drop.policies;
    const desired = desiredOf(drop, 'w', without(drop, policy?.recorded.node ?? ''));
    assert.deepEqual([verdictOf(desired), desired.table.elements.slot_fwd.size], [DROPPED, 0]);
    assert.deepEqual(problemsOf(desired), ['red/p: GatewayUnreachable']);
    assert.match(desired.problems[0]?.finding.sentence ?? '', /its EgressTunnel lacks a mark or an address/);
  });

  it('drops for a gateway node that tunnel packets of its family do not reach, and says so', () => {
    const tunnels = drop.tunnels.map((tunnel) =>
      tunnel.node === 'w' ? tunnel : { ...tunnel, parent: { ...tunnel.parent, ipv4: undefined } },
    );
    const desired = desiredOf(drop, 'w', { tunnels });
    assert.deepEqual([verdictOf(desired), desired.table.elements.slot_fwd.size], [DROPPED, 0]);
    assert.match(
      desired.problems[0]?.finding.sentence ?? '',
      /reports no address of the family that carries the tunnel/,
    );
  });

  it('gives up a gateway node that is not Ready only for policies that say NodeIP', () => {
    const failed = (view: ClusterView): Partial<NodeInput> => ({
      tunnels: view.tunnels.map((tunnel) => ({ ...tunnel, recorded: { ...tunnel.recorded, phase: 'Failed' } })),
    });
    assert.match(verdictOf(desiredOf(drop, 'w', failed(drop))) ?? '', /^0x2600[0-3][0-9a-f]{3}$/);
    assert.notEqual(verdictOf(desiredOf(drop, 'w', failed(drop))), DROPPED);
    assert.equal(verdictOf(desiredOf(nodeIp, 'w', failed(nodeIp))), LEFT_ALONE);
  });

  it('drops IPv6 where the policy has an IPv4 EIP only', () => {
    const view = smallCluster({ 'red/p': {} }, { ipv4: ['10.6.1.1'], ipv6: [] });
    const desired = desiredOf(view, 'w');
    assert.notEqual(verdictOf(desired), DROPPED);
    assert.equal(verdictOf(desired, 6), DROPPED);
  });

  it('takes nothing for outside while the ranges of the cluster are not known', () => {
    const view = smallCluster({ 'red/p': {}, 'red/q': { destSubnet: ['203.0.113.0/24'] } });
    for (const ranges of [undefined, { ...view.ranges, isKnown: false }]) {
      const desired = desiredOf(view, 'w', { ranges });
      assert.equal(verdictOf(desired), undefined);
      assert.equal(desired.table.elements.dst4.size, 1);
      assert.deepEqual(problemsOf(desired), ['red/p: RangesUnknown']);
    }
  });

  for (const [first, second] of [
    ['old', 'young'],
    ['young', 'old'],
  ] as const) {
    it(`gives a slot that two policies record to the older one, also when the ${first} one wins`, () => {
      const view = smallCluster({ 'red/old': { priority: 1 }, 'red/young': { priority: first === 'old' ? 2 : 0 } });
      const [old] = view.policies;
      const policies = view.policies.map((policy) => ({ ...policy, recorded: old?.recorded ?? policy.recorded }));
      const desired = desiredOf(view, 'w', { policies });
      assert.equal(desired.table.elements.slot_fwd.size, 1);
      assert.equal(verdictOf(desired) === DROPPED, second === 'old');
    });
  }
});

describe('strict start', () => {
  const view = smallCluster({ 'red/p': {} });
  const strict = {
    settings: { ...nodeSettings, isStrict: true },
    namespaces: [{ name: 'red', labels: {} }],
  };
  const keysOf = ({ table }: NodeDesired) => {
    const { range4, range6, known4, known6 } = table.elements;
    return [range4, range6, known4, known6].map((elements) => [...elements.keys()].toSorted());
  };

  it('knows the pods of the node, under a policy or not, and where pods are', () => {
    const desired = desiredOf(view, 'w', strict);
    assert.equal(desired.table.settings.isStrict, true);
    assert.deepEqual(keysOf(desired), [
      ['10.244.0.0/16'],
      ['fd44::/32'],
      ['10.244.1.7', '10.244.1.8', '10.244.1.9'],
      ['fd44::7', 'fd44::8', 'fd44::9'],
    ]);
  });

  it('does not know a pod whose namespace is not known, one without a network of its own, and one that has finished', () => {
    const [first, second, third] = smallPods.filter(({ node }) => node === 'w');
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const pods = [
      { ...first, namespace: 'unheard-of' },
      { ...second, isHostNetwork: true },
      { ...third, isFinished: true },
    ];
    const [, , known4, known6] = keysOf(desiredOf(view, 'w', { ...strict, pods }));
    assert.deepEqual([known4, known6], [[], []]);
  });

  it('keeps nobody back while it is not known where pods are, or when it is off', () => {
    const [range4, range6] = keysOf(desiredOf(view, 'w', { ...strict, ranges: undefined }));
    assert.deepEqual([range4, range6], [[], []]);
    assert.deepEqual(keysOf(desiredOf(view, 'w')), [[], [], [], []]);
  });
});

describe('families', () => {
  const view = smallCluster({ 'red/p': {}, 'red/node': { useNodeIP: true, destSubnet: ['8.8.8.8', '2606::/16'] } });

  it('makes nothing for a family that is turned off', () => {
    const only4 = { settings: { ...nodeSettings, hasIpv6: false } };
    for (const node of ['w', 'a', 'b']) {
      const { table, network, sysctls, claims } = desiredOf(view, node, only4);
      const { vteps6, ...elements } = table.elements;
      const filled = Object.entries(elements).filter(([name, map]) => name.endsWith('6') && map.size > 0);
      assert.deepEqual(filled, []);
      assert.ok(vteps6.size > 0, 'a tunnel packet may come by IPv6 all the same');
      const { rules, addresses, routes, neighbours, proxies } = network;
      const ips = [...claims, ...addresses, ...neighbours].map(({ ip }) => ip);
      assert.deepEqual(
        [...ips, ...routes.map(({ via }) => via)].filter((one) => one.includes(':')),
        [],
      );
      assert.deepEqual([rules.filter(({ family }) => family === 6), proxies], [[], []]);
      assert.equal(sysctls.has('net/ipv6/conf/all/forwarding'), false);
    }
  });

  it('carries the tunnel by IPv6 where there is no IPv4, with the longer header', () => {
    const tunnels = view.tunnels.map((tunnel) => ({ ...tunnel, parent: { ...tunnel.parent, ipv4: undefined } }));
    const input = { ...nodeInput({ ...view, tunnels }, 'w', smallPods), settings: { ...nodeSettings, hasIpv4: false } };
    const { table, network, sysctls } = createNodePlanner()(input);
    const [link] = network.links;
    assert.ok(link?.kind === 'vxlan');
    assert.deepEqual([link.local, link.mtu, table.settings.mss.ipv6], ['2001:db8:1::3', 1430, 1370]);
    assert.equal(table.settings.parent, link.parent);
    assert.deepEqual(network.forwardings.map(({ to }) => to).toSorted(), ['2001:db8:1::1', '2001:db8:1::2']);
    assert.equal(table.elements.pod4.size, 0);
    assert.equal(table.elements.pod6.size, 2);
    assert.deepEqual(
      [...sysctls.keys()].filter((path) => path.startsWith('net/ipv4')),
      [],
    );
  });
});
