import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { isKindName, kinds, resourceOf } from '../api/kinds.ts';
import { ip as ipOf } from '../core/testing/address.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { fastClock } from '../runtime/testing/fast-clock.ts';
import { createFakeNode, type FakeNode } from './testing/fake-node.ts';
import { tunnelObject } from './testing/objects.ts';
import { type RunningAgent, startAgent } from './testing/run.ts';

const [nodes, namespaces, pods] = [
  coreResource('nodes', 'Node', false),
  coreResource('namespaces', 'Namespace', false),
  coreResource('pods', 'Pod', true),
];
const [policies, tunnels, infos] = [
  resourceOf('EgressPolicy'),
  resourceOf('EgressTunnel'),
  resourceOf('EgressClusterInfo'),
];
const resources = [nodes, namespaces, pods, ...Object.keys(kinds).filter(isKindName).map(resourceOf)];

/** Reports are a second apart. */
const clock = fastClock(10);
let server: TestApiServer;
let node: FakeNode;
let running: RunningAgent[];
before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server.stop());
beforeEach(async () => {
  node = await createFakeNode(clock);
  running = [];
  for (const resource of resources) for (const { metadata } of server.list(resource)) remove(resource, metadata);
  put(infos, { metadata: { name: 'default' }, status: { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'] } } } });
  put(namespaces, { metadata: { name: 'shop' } });
  put(nodes, { metadata: { name: 'a', labels: { egress: 'true' } } });
  putTunnel('a', 1);
  putTunnel('b', 2, { parent: { name: 'eth0', ipv4: '10.6.0.12', ipv6: 'fd06::12' } });
});
afterEach(() => Promise.all(running.map((agent) => agent.stop())));

const put = (resource: Resource, object: object) => server.put(resource, object as KubeObject);
const remove = (resource: Resource, { namespace, name }: KubeObject['metadata']) =>
  server.delete(resource, namespace === undefined ? name : `${namespace}/${name}`);
const putTunnel = (name: string, number: number, agentPart?: object) =>
  put(tunnels, tunnelObject(name, number, agentPart));
const putPolicy = (
  name: string,
  slot: number,
  where: string,
  eip: object,
  destSubnet?: readonly string[],
  onExistingConnections?: string,
) =>
  put(policies, {
    metadata: { namespace: 'shop', name, uid: `uid-${name}`, generation: onExistingConnections === undefined ? 1 : 2 },
    spec: {
      egressGatewayName: 'out',
      appliedTo: { podSelector: { matchLabels: { app: name } } },
      ...(destSubnet && { destSubnet }),
      ...(onExistingConnections && { onExistingConnections }),
    },
    status: { eip, node: where, slot },
  });
const putPod = (name: string, ip: string, app = name) =>
  put(pods, {
    metadata: { namespace: 'shop', name, labels: { app } },
    spec: { nodeName: 'a' },
    status: { phase: 'Running', podIPs: [{ ip }] },
  });

const start = async (): Promise<RunningAgent> => {
  const agent = startAgent(server.access, node.kernel(), clock);
  running.push(agent);
  await agent.ready();
  return agent;
};
/** The report of a node is part of its own input: until it has come back, more is to come. */
const reportIsBack = () =>
  eventually('the own report has come back', async () => (await elements())?.vteps4.has('10.6.0.11') === true);
const elements = async () => (await node.kernel().nftables.read())?.elements;
const addresses = async () => (await node.network.read()).addresses.map(({ ip, device }) => `${ip} ${device}`);
const status = () => EgressTunnelStatus.parse(Object(server.read(tunnels, 'a')).status ?? {});
const mark = (kind: string, slot: number) => `0x${kind}00${slot.toString(16).padStart(4, '0')}`;

describe('an agent', () => {
  it('touches nothing before all caches are filled', async () => {
    server.faults.add({ verb: 'watch', plural: 'namespaces' }, { kind: 'hang' });
    const agent = startAgent(server.access, node.kernel(), clock);
    running.push(agent);
    await eventually('the other caches are filled', () => agent.agent.missing().join() === 'namespaces');
    assert.equal(node.nft.transactions, 0);
    assert.deepEqual(
      node.network.kernel.said.filter((line) => /egress\.vxlan|egw-eip/.test(line)),
      [],
    );
    assert.equal(agent.held(), 0, 'pods that wait for the agent do so still');
  });

  it('says once that the kernel holds what it should, for pods that wait for it', async () => {
    const agent = await start();
    await reportIsBack();
    assert.equal(agent.held(), 1);
  });

  it('a node has booted: connections that its pods opened before the agent was there are cut before it is ready', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPod('web-1', '10.244.1.1', 'web');
    putPod('other-1', '10.244.1.2', 'other');
    const [web, other] = [ipOf('10.244.1.1'), ipOf('10.244.1.2')];
    for (const pod of [web, other]) node.conntrack.open(pod, ipOf('203.0.113.9'), 0);
    node.conntrack.open(web, ipOf('10.244.2.2'), 0);
    const agent = startAgent(server.access, node.kernel(), clock);
    running.push(agent);
    await eventually('it is ready', () => agent.held() === 1);
    assert.equal(node.conntrack.count, 2, 'that of the other pod stays, and that within the cluster');
    assert.match(await agent.metrics(), /sallyport_connections_cut_total 1/);
    putPod('web-2', '10.244.1.3', 'web');
    node.conntrack.open(ipOf('10.244.1.3'), ipOf('203.0.113.9'), 0);
    await eventually('what a pod opened before the agent knew it is cut', () => node.conntrack.count === 2);
  });

  it('a restart cuts nothing of pods that the kernel knew, and a new policy cuts only if it says so', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPod('web-1', '10.244.1.1', 'web');
    putPod('other-1', '10.244.1.2', 'other');
    await (await start()).stop();
    running = [];
    node.conntrack.open(ipOf('10.244.1.1'), ipOf('203.0.113.9'), 0);
    node.conntrack.open(ipOf('10.244.1.2'), ipOf('203.0.113.9'), 0);
    await start();
    assert.equal(node.conntrack.count, 2, 'it was open before the policy');
    putPolicy('other', 8, 'b', { ipv4: '10.6.0.101' });
    await eventually('the policy is in force', async () => (await elements())?.pod4.has('10.244.1.2') === true);
    putPolicy('other', 8, 'b', { ipv4: '10.6.0.101' }, undefined, 'Cut');
    await eventually('its connection is cut', () => node.conntrack.count === 1);
  });

  it('somebody deletes the table: what pods open meanwhile is cut when it is back', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPod('web-1', '10.244.1.1', 'web');
    await start();
    node.conntrack.open(ipOf('10.244.1.1'), ipOf('203.0.113.9'), 0);
    node.nft.meddle('delete table inet sallyport\n');
    await eventually('it is cut', () => node.conntrack.count === 0);
  });

  it('on a gateway node: asks the network, holds the EIPs, announces them, reports', async () => {
    putPolicy('web', 7, 'a', { ipv4: '10.6.0.100', ipv6: 'fd06::100' });
    await start();
    await eventually('the EIPs are held', async () =>
      new Set(['10.6.0.100 egw-eip', 'fd06::100 egw-eip']).isSubsetOf(new Set(await addresses())),
    );
    const { slot_eip4, slot_fwd, eips6 } = (await elements()) ?? assert.fail('no table');
    assert.deepEqual([...slot_eip4], [[mark('28', 7), '10.6.0.100']]);
    assert.deepEqual([...slot_fwd], [[mark('26', 7), mark('28', 7)]]);
    assert.deepEqual([...eips6.keys()], ['fd06::100']);
    assert.equal(node.sysctls.settings.get('net/ipv6/conf/eth0/proxy_ndp'), '1');
    const { resourceVersion } = server.read(policies, 'shop/web')?.metadata ?? {};
    await eventually('the report is whole', () => Number(status().report?.appliedRevision) >= Number(resourceVersion));
    assert.deepEqual(status().report?.eips, [
      { ip: '10.6.0.100', epoch: 0 },
      { ip: 'fd06::100', epoch: 0 },
    ]);
    assert.deepEqual(status().tunnel?.parent, { name: 'eth0', ipv4: '10.6.0.11', ipv6: 'fd06::11' });
    assert.equal(status().mark, '0x26000100', 'what the controller wrote is still there');
  });

  it('on a worker: a new pod is one small transaction, without a look at the kernel', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPod('web', '10.244.1.5');
    await start();
    await reportIsBack();
    const before = { transactions: node.nft.transactions, listings: node.nft.listings };
    const said = node.network.kernel.said.length;
    putPod('web-2', '10.244.1.6', 'web');
    await eventually('there was a transaction', () => node.nft.transactions > before.transactions);
    assert.equal(node.nft.listings, before.listings);
    const held = await elements();
    assert.equal(held?.pod4.get('10.244.1.6'), held?.pod4.get('10.244.1.5'));
    assert.equal(node.nft.transactions, before.transactions + 1);
    assert.equal(node.network.kernel.said.length, said);
  });

  it('reports also the versions of policies that made no difference', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    await start();
    const policy = server.read(policies, 'shop/web') ?? assert.fail('no policy');
    const { metadata } = put(policies, { ...policy, metadata: { ...policy.metadata, labels: { team: 'a' } } });
    await eventually('it is reported', () => status().report?.appliedRevision === metadata.resourceVersion);
  });

  it('that starts again on the same node changes nothing and asks nothing', async () => {
    putPolicy('web', 7, 'a', { ipv4: '10.6.0.100', ipv6: 'fd06::100' });
    putPolicy('far', 8, 'b', { ipv4: '10.6.0.101' });
    putPod('web', '10.244.1.5');
    const first = await start();
    await eventually('the EIP is held', async () => (await addresses()).includes('fd06::100 egw-eip'));
    await reportIsBack();
    await first.stop();
    running = [];
    const [transactions, said, sent] = [
      node.nft.transactions,
      node.network.kernel.said.length,
      node.segment.sent.length,
    ];
    const held = await elements();
    const second = await start();
    assert.equal(node.nft.transactions, transactions);
    assert.deepEqual(node.network.kernel.said.slice(said), []);
    assert.deepEqual(await elements(), held);
    assert.doesNotMatch(await second.metrics(), /^sallyport_node_changes_total\{/m);
    const arps = node.segment.sent.slice(sent).filter(({ frame }) => frame.readUInt16BE(12) === 0x0806);
    assert.deepEqual(
      new Set(arps.map(({ frame }) => frame.toString('hex', 28, 32))),
      new Set(['0a060064']),
      'no probes',
    );
  });

  it('puts back what somebody else changes, and says so', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPod('web', '10.244.1.5');
    const agent = await start();
    node.nft.meddle('delete table inet sallyport\n');
    await eventually('the table is back', async () => (await elements())?.pod4.has('10.244.1.5') === true);
    node.sysctls.settings.set('net/ipv4/ip_forward', '0');
    await eventually('the setting is back', () => node.sysctls.settings.get('net/ipv4/ip_forward') === '1');
    await node.network.kernel.programs.run(['ip', 'link', 'del', 'egress.vxlan']);
    await eventually('the tunnel is back', async () => (await addresses()).includes('172.31.0.1 egress.vxlan'));
    await eventually('all is told', async () => {
      const told = new Set(
        agent.events.map(({ reason, note }) => `${reason} ${note.split(' ').slice(0, 6).join(' ')}`),
      );
      return told.size === 3;
    });
    const text = await agent.metrics();
    for (const part of ['table', 'network', 'sysctls']) {
      assert.match(text, new RegExp(`^sallyport_node_drift_repairs_total\\{part="${part}"\\} [1-9]`, 'm'));
    }
  });

  it('forgets the connections of a policy that is gone, and of no other', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    putPolicy('db', 8, 'b', { ipv4: '10.6.0.101' });
    await start();
    for (const slot of [7, 8, undefined]) node.conntrack.connect(slot);
    server.delete(policies, 'shop/web');
    await eventually('they are forgotten', () => !node.conntrack.slots.includes(7));
    assert.deepEqual(node.conntrack.slots, [8, 8, undefined, undefined]);
  });

  it('forgets the connections of a policy that went while no agent ran', async () => {
    putPolicy('web', 7, 'b', { ipv4: '10.6.0.100' });
    const first = await start();
    await first.stop();
    running = [];
    node.conntrack.connect(7);
    server.delete(policies, 'shop/web');
    await start();
    await eventually('they are forgotten', () => node.conntrack.slots.length === 0);
  });

  it('does not claim an EIP that another machine has: problem with the policy, event, nothing in the kernel', async () => {
    node.segment.host('66:00:00:00:00:99').addresses.add(ipOf('10.6.0.100'));
    putPolicy('web', 7, 'a', { ipv4: '10.6.0.100', ipv6: 'fd06::100' });
    const agent = await start();
    await eventually('it is reported', () => status().report?.problems?.length === 1);
    const [problem] = status().report?.problems ?? [];
    assert.equal(problem?.reason, 'EipInUse');
    assert.equal(problem?.policy, 'shop/web');
    await eventually('the other EIP is held', async () => (await addresses()).includes('fd06::100 egw-eip'));
    assert.ok(!(await addresses()).includes('10.6.0.100 egw-eip'));
    assert.equal((await elements())?.slot_eip4.size, 0);
    assert.deepEqual(
      agent.events.map(({ reason, type }) => `${type} ${reason}`),
      ['Warning EipInUse'],
    );
    assert.match(await agent.metrics(), /^sallyport_eip_conflicts_total\{eip="10.6.0.100"\} 1$/m);
  });

  it('keeps a policy that the kernel refuses from stopping the others', async () => {
    for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      putPod(name, `10.244.1.${index + 1}`);
      putPolicy(name, index + 1, 'b', { ipv4: '10.6.0.100' }, [`192.0.2.${index}/32`]);
    }
    const run = node.nft.run;
    node.nft.run = async (argv, options) =>
      options?.input?.includes('192.0.2.2/32')
        ? { code: 1, stdout: '', stderr: 'Error: conflicting intervals specified' }
        : run(argv, options);
    await start();
    await eventually('it is reported', () => status().report?.problems?.length === 1);
    const [problem] = status().report?.problems ?? [];
    assert.equal(problem?.reason, 'NftRefused');
    assert.equal(problem?.policy, 'shop/c');
    const { pod4, dst4, dflt4 } = (await elements()) ?? assert.fail('no table');
    const verdictOf = (ip: string, to: string) => dst4.get(`${pod4.get(ip)} . ${to}`);
    assert.equal(verdictOf('10.244.1.1', '192.0.2.0'), mark('26', 1));
    assert.equal(verdictOf('10.244.1.5', '192.0.2.4'), mark('26', 5));
    assert.equal(dflt4.get(pod4.get('10.244.1.3') ?? ''), mark('26', 0), 'its own pods are cut off');
  });

  it('says why when the kernel has no nftables, and gets over it', async () => {
    node.nft.failure = { code: 127, stdout: '', stderr: 'spawn nft ENOENT' };
    const agent = startAgent(server.access, node.kernel(), clock);
    running.push(agent);
    await eventually('it is reported', () => status().report?.problems?.[0]?.reason === 'NftMissing');
    assert.deepEqual(agent.agent.missing(), ['the kernel']);
    node.nft.failure = undefined;
    await agent.ready();
    await eventually('nothing is wrong any more', () => status().report?.problems?.length === 0);
  });

  it('blames nft, not the routes, when nft prints half a listing, and gets over it', async () => {
    node.nft.failure = { code: 0, stdout: '{"nftables": [{"table": {"flags":', stderr: '' };
    const agent = startAgent(server.access, node.kernel(), clock);
    running.push(agent);
    await eventually('it is reported', () => status().report?.problems?.[0]?.reason === 'NftRefused');
    node.nft.failure = undefined;
    await agent.ready();
    await eventually('nothing is wrong any more', () => status().report?.problems?.length === 0);
  });

  it('says why when the interface of the tunnel is gone, and goes on when it is back', async () => {
    await start();
    await eventually('the tunnel is reported', () => status().tunnel?.parent?.name === 'eth0');
    await node.network.kernel.programs.run(['ip', 'link', 'set', 'eth0', 'down']);
    await eventually('it is reported', () => status().report?.problems?.[0]?.reason === 'ParentInterfaceMissing');
    assert.equal(status().tunnel?.parent, undefined);
    for (const line of ['link set eth0 up', 'route add default via 10.6.0.1 dev eth0']) {
      await node.network.kernel.programs.run(['ip', ...line.split(' ')]);
    }
    await eventually('the tunnel is back', () => status().tunnel?.parent?.name === 'eth0');
  });
});
