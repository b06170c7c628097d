import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finding } from '../cluster/finding.ts';
import { ip } from '../testing/address.ts';
import { nodeInput, nodeSettings } from '../testing/nodes.ts';
import { desiredOf, hostOf, problemsOf, smallCluster } from '../testing/small-cluster.ts';
import type { NodeDesired } from './desired.ts';
import { createNodePlanner } from './desired-for.ts';
import type { NodeInput } from './input.ts';

// Two policies that share an EIP, because both ask for it.
const view = smallCluster({
  'red/p': { ipv4: '10.6.1.1', ipv6: 'fd06:1::1' },
  'red/q': { ipv4: '10.6.1.1', ipv6: 'fd06:1::1' },
});
const [owner = ''] = view.policies.map(({ recorded }) => recorded.node);
const on = (over: Partial<NodeInput> = {}): NodeDesired => desiredOf(view, owner, over);
const heldBy = ({ claims, network, table }: NodeDesired) => ({
  claims: claims.map((claim) => claim.ip),
  addresses: network.addresses.filter(({ device }) => device === 'egw-eip').map((address) => address.ip),
  guarded: [...table.elements.eips4.keys(), ...table.elements.eips6.keys()],
  sources: [...table.elements.slot_eip4.values(), ...table.elements.slot_eip6.values()],
});
const withHost = (interfaces: NodeInput['host']['interfaces']): Partial<NodeInput> => ({
  host: { ...hostOf(view, owner, {}), interfaces },
});
const interfacesOf = (desired: NodeDesired): string[] =>
  desired.claims.map(({ ip: one, interfaces }) => `${one} on ${interfaces.join()}`);

describe('claims', () => {
  it('hold a shared EIP once, with both slots', () => {
    assert.deepEqual(heldBy(on()), {
      claims: ['10.6.1.1', 'fd06:1::1'],
      addresses: ['10.6.1.1', 'fd06:1::1'],
      guarded: ['10.6.1.1', 'fd06:1::1'],
      sources: ['10.6.1.1', '10.6.1.1', 'fd06:1::1', 'fd06:1::1'],
    });
  });

  it('are the same list while the EIPs are the same, and stay in order when some come and go', () => {
    const given = { 'red/p': { ipv4: '10.6.1.9' }, 'red/q': { ipv4: '10.6.1.2' }, 'red/r': { ipv4: '10.6.1.5' } };
    const cluster = smallCluster(given, { ipv4: ['10.6.1.1-10.6.1.9'], ipv6: [] });
    const everywhere = cluster.policies.map((policy) => ({ ...policy, recorded: { ...policy.recorded, node: 'a' } }));
    const plan = createNodePlanner();
    const input = nodeInput(cluster, 'a', []);
    const claimsOf = (policies: NodeInput['policies']) => plan({ ...input, policies }).claims;
    const ips = (claims: NodeDesired['claims']) => claims.map((claim) => claim.ip);
    const all = claimsOf(everywhere);
    assert.deepEqual(ips(all), ['10.6.1.2', '10.6.1.5', '10.6.1.9']);
    assert.equal(claimsOf(everywhere.map((policy) => ({ ...policy }))), all);
    assert.deepEqual(ips(claimsOf(everywhere.slice(0, 2))), ['10.6.1.2', '10.6.1.9']);
    assert.deepEqual(claimsOf(everywhere), all);
  });

  it('are made on no other node', () => {
    const other = desiredOf(view, owner === 'a' ? 'b' : 'a');
    assert.deepEqual(heldBy(other), { claims: [], addresses: [], guarded: [], sources: [] });
    // The device is there for the first one that comes.
    assert.deepEqual(
      other.network.links.map(({ kind }) => kind),
      ['vxlan', 'holder'],
    );
  });

  it('wait for the end of the probe, family by family', () => {
    const desired = on({ unclaimable: new Map([[ip('10.6.1.1'), 'probing']]) });
    const only6 = ['fd06:1::1'];
    assert.deepEqual(heldBy(desired), {
      claims: only6,
      addresses: only6,
      guarded: only6,
      sources: ['fd06:1::1', 'fd06:1::1'],
    });
    assert.deepEqual(desired.unclaimed, [{ ip: '10.6.1.1', interfaces: ['eth0'] }]);
    assert.deepEqual(problemsOf(desired), []);
  });

  it('tell every policy of an EIP that another machine has', () => {
    const taken = finding('EipInUse', '66:66:66:66:66:66 answers for 10.6.1.1.');
    const desired = on({ unclaimable: new Map([[ip('10.6.1.1'), taken]]) });
    assert.deepEqual(problemsOf(desired), ['red/p: EipInUse', 'red/q: EipInUse']);
    assert.deepEqual(desired.problems[0]?.finding, taken);
  });

  it('never hold the address of a node, which the guard would cut off', () => {
    const { parent } = view.tunnels.find(({ node }) => node === 'w') ?? {};
    assert.ok(parent !== undefined);
    const policies = view.policies.map((policy) => ({ ...policy, recorded: { ...policy.recorded, eip: parent } }));
    const desired = on({ policies });
    assert.deepEqual(heldBy(desired), { claims: [], addresses: [], guarded: [], sources: [] });
    assert.deepEqual(desired.unclaimed, [], 'there is nothing to ask the network');
    assert.equal(problemsOf(desired).filter((problem) => problem === 'red/p: PoolOverlapsCluster').length, 2);
  });

  it('do not guard the address of a node that policies leave with', () => {
    const nodeIp = smallCluster({ 'red/p': { useNodeIP: true } });
    const [node = ''] = nodeIp.policies.map(({ recorded }) => recorded.node);
    const { parent } = nodeIp.tunnels.find((tunnel) => tunnel.node === node) ?? {};
    assert.deepEqual(heldBy(desiredOf(nodeIp, node)), {
      claims: [],
      addresses: [],
      guarded: [],
      sources: [parent?.ipv4, parent?.ipv6],
    });
  });
});

describe('interfaces of a claim', () => {
  const mac = '66:00:00:00:00:11';
  it('are those that have the EIP on link', () => {
    const interfaces = [
      { name: 'eth1', mac, networks: ['10.6.0.0/16'] },
      { name: 'eth0', mac, networks: ['192.0.2.0/24', 'fd06:1::/64'] },
      { name: 'bond0', mac, networks: ['10.6.1.0/24', 'nonsense'] },
    ];
    assert.deepEqual(interfacesOf(on(withHost(interfaces))), ['10.6.1.1 on bond0,eth1', 'fd06:1::1 on eth0']);
  });

  it('are the parent interface where none has it', () => {
    assert.deepEqual(interfacesOf(on(withHost([{ name: 'eth1', mac, networks: ['203.0.113.0/24'] }]))), [
      '10.6.1.1 on eth0',
      'fd06:1::1 on eth0',
    ]);
  });

  it('are never those that the configuration excludes; where none is left, policies are told', () => {
    const interfaces = [{ name: 'eth1', mac, networks: ['10.6.0.0/16'] }];
    const settings = { ...nodeSettings, notAnnounced: [/^eth1$/] };
    assert.deepEqual(interfacesOf(on({ ...withHost(interfaces), settings }))[0], '10.6.1.1 on eth0');
    const none = on({ ...withHost(interfaces), settings: { ...settings, notAnnounced: [/^eth/] } });
    assert.deepEqual(interfacesOf(none), ['10.6.1.1 on ', 'fd06:1::1 on ']);
    assert.deepEqual([...new Set(problemsOf(none))], ['red/p: AnnounceFailed', 'red/q: AnnounceFailed']);
  });
});
