/** An agent that agrees with others on owners, on a node in memory; the thread of heartbeats says what the test wants. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { isKindName, kinds, resourceOf } from '../api/kinds.ts';
import { failoverNames } from '../api/names.ts';
import type { Ip } from '../core/ip/index.ts';
import { ip } from '../core/testing/address.ts';
import { leaseResource } from '../runtime/control/lease-record.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { fastClock } from '../runtime/testing/fast-clock.ts';
import { createFakeNode, type FakeNode } from './testing/fake-node.ts';
import { type FakeThread, fakeThread } from './testing/fake-thread.ts';
import { tunnelObject } from './testing/objects.ts';
import { type RunningAgent, startAgent } from './testing/run.ts';

const [nodes, namespaces, pods, secrets] = [
  coreResource('nodes', 'Node', false),
  coreResource('namespaces', 'Namespace', false),
  coreResource('pods', 'Pod', true),
  coreResource('secrets', 'Secret', true),
];
const [policies, tunnels, infos, gateways] = [
  resourceOf('EgressPolicy'),
  resourceOf('EgressTunnel'),
  resourceOf('EgressClusterInfo'),
  resourceOf('EgressGateway'),
];
const resources = [
  nodes,
  namespaces,
  pods,
  secrets,
  leaseResource,
  ...Object.keys(kinds).filter(isKindName).map(resourceOf),
];
const clock = fastClock(10);
const [eip, pair] = [ip('10.6.0.100'), ip('fd06::100')];

let server: TestApiServer;
let node: FakeNode;
let running: RunningAgent[];
let threads: FakeThread[];
before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server.stop());

const put = (resource: Resource, object: object) => server.put(resource, object as KubeObject);
const putTunnel = (name: string, number: number) =>
  put(
    tunnels,
    tunnelObject(name, number, { parent: { name: 'eth0', ipv4: `10.6.0.1${number}`, ipv6: `fd06::1${number}` } }),
  );
/** A policy whose EIP is on node b, which this node may have to take over; or on another one. */
const putPolicy = (where = 'b') =>
  put(policies, {
    metadata: { namespace: 'shop', name: 'web', uid: 'uid-web', generation: 1 },
    spec: { egressGatewayName: 'out', appliedTo: { podSelector: { matchLabels: { app: 'web' } } } },
    status: { eip: { ipv4: eip, ipv6: 'fd06::100' }, node: where, slot: 7, epoch: 3 },
  });

beforeEach(async () => {
  node = await createFakeNode(clock);
  running = [];
  threads = [];
  for (const resource of resources) {
    for (const { metadata } of server.list(resource)) {
      server.delete(
        resource,
        metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`,
      );
    }
  }
  const electorate = { generation: 2, voters: ['a', 'b', 'c'], apiVotes: false };
  const egressIgnoreCIDR = { podCIDR: { ipv4: ['10.244.0.0/16'] } };
  put(infos, { metadata: { name: 'default' }, status: { egressIgnoreCIDR, electorate } });
  put(namespaces, { metadata: { name: 'shop' } });
  put(nodes, { metadata: { name: 'a' } });
  for (const [index, name] of ['a', 'b', 'c'].entries()) putTunnel(name, index + 1);
  put(gateways, {
    metadata: { name: 'out' },
    spec: {
      ippools: { ipv4: [eip], ipv6: ['fd06::100'] },
      nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
    },
    status: { nodeList: [{ name: 'a' }, { name: 'b' }] },
  });
  put(secrets, {
    metadata: { namespace: 'sallyport', name: failoverNames.secret },
    data: { key: Buffer.alloc(32, 1).toString('base64') },
  });
  putPolicy();
});
afterEach(() => Promise.all(running.map((agent) => agent.stop())));

const start = async (kernel = node.kernel()): Promise<RunningAgent> => {
  const nothing = () => {};
  const quiet = { take: nothing, vote: nothing, setAddresses: nothing, setReady: nothing, setUplink: nothing };
  const agent = startAgent(server.access, kernel, clock, {
    startHeartbeat: (data, hooks) => {
      threads.push(fakeThread(data, hooks).thread);
      const listening = async () => {};
      return { ...quiet, listening, renew: nothing, setMirror: nothing, close: async () => {} } as never;
    },
    startMirror: () => ({ set: nothing, port: () => new MessageChannel().port1, close: async () => {} }) as never,
  });
  running.push(agent);
  await agent.ready();
  await eventually('the thread runs', () => threads.length > 0);
  return agent;
};
const thread = () => threads.at(-1) ?? assert.fail('no thread');
/** The thread says that this node owns the EIP, and that the kernel answers for these addresses. */
const own = (epoch: number, ips: readonly Ip[] = [eip, pair]) => {
  thread().hooks.told({ kind: 'opened', ips });
  thread().hooks.told({ kind: 'hold', held: [{ eip, epoch, mode: 'owned' }] });
};
const addresses = async () =>
  (await node.network.read()).addresses.flatMap(({ ip, device }) => (device === 'egw-eip' ? [ip] : []));
const vteps = async () => [...((await node.kernel().nftables.read())?.elements.vteps4.keys() ?? [])];
const slot = async () => (await node.kernel().nftables.read())?.elements.slot_fwd.get('0x26000007');
const status = () => EgressTunnelStatus.parse(Object(server.read(tunnels, 'a')).status ?? {});

describe('an agent that agrees with others', () => {
  it('makes what may come lie ready, behind a gate that is shut, and claims nothing', async () => {
    await start();
    await eventually('the EIPs lie ready', async () => (await addresses()).length === 2);
    assert.deepEqual([...node.gate.covered].toSorted(), [eip, 'fd06::100']);
    assert.deepEqual(node.gate.answered(), []);
    assert.deepEqual(thread().data.held, []);
    await eventually('the electorate is reported', () => status().report?.electorate?.generation === 2);
    assert.deepEqual(status().report?.eips, []);
  });

  it('reports what it took over with its epoch, tells people, and sends its own pods out here', async () => {
    const agent = await start();
    await eventually('slots lead to node b', async () => (await slot())?.startsWith('0x26') === true);
    thread().hooks.told({
      kind: 'event',
      reason: 'EipTakenOver',
      cause: 'silence',
      eip,
      epoch: 4,
      other: 'b',
      took: { detectionMs: 100, claimMs: 5 },
    });
    own(4);
    await eventually('slots leave here', async () => (await slot()) === '0x28000007');
    await eventually('it is reported', () => status().report?.eips?.length === 2);
    assert.deepEqual(status().report?.eips, [
      { ip: eip, epoch: 4 },
      { ip: 'fd06::100', epoch: 4 },
    ]);
    assert.ok(agent.events.some(({ reason }) => reason === 'EipTakenOver'));
    assert.match(await agent.metrics(), /sallyport_failover_takeovers_total\{cause="silence"\} 1/);
  });

  it('does not report an EIP as held, though the rules of its policy are there, before the kernel answers for it', async () => {
    putPolicy('a');
    await start();
    const { resourceVersion } = server.read(policies, 'shop/web')?.metadata ?? {};
    await eventually('rules are reported', () => Number(status().report?.appliedRevision) >= Number(resourceVersion));
    assert.deepEqual(status().report?.eips, [], 'nobody has agreed yet');
    own(4, []);
    await eventually('slots leave here', async () => (await slot()) === '0x28000007');
    putTunnel('d', 4);
    await eventually('another pass is over', async () => (await vteps()).includes('10.6.0.14'));
    assert.deepEqual(status().report?.eips, [], 'the gate is still shut, as while connections are brought');
    thread().hooks.told({ kind: 'opened', ips: [eip, pair] });
    await eventually('it is reported', () => status().report?.eips?.length === 2);
    thread().hooks.told({ kind: 'opened', ips: [] });
    await eventually('that it is shut again, too', () => status().report?.eips?.length === 0);
  });

  it('lets connections of its own pods change sides with their EIP: when its gate is open, and at once when it leaves', async () => {
    await start();
    await eventually('slots lead to node b', async () => (await slot())?.startsWith('0x26') === true);
    node.conntrack.connect(7);
    own(4, []);
    await eventually('slots leave here', async () => (await slot()) === '0x28000007');
    putTunnel('d', 4);
    await eventually('another pass is over', async () => (await vteps()).includes('10.6.0.14'));
    assert.equal(node.conntrack.count, 2, 'the mirror may still have to exchange them');
    thread().hooks.told({ kind: 'opened', ips: [eip, pair] });
    await eventually('what was not exchanged is forgotten', () => node.conntrack.count === 0);
    node.conntrack.redirect(7, eip, 'talked');
    node.conntrack.redirect(7, eip);
    thread().hooks.told({ kind: 'hold', held: [{ eip, epoch: 4, mode: 'carried', other: 'b' }] });
    thread().hooks.told({ kind: 'owner', eip, epoch: 5, node: 'b' });
    await eventually('what the other node knows goes on there', () => node.conntrack.eips.length === 1);
    assert.equal(node.conntrack.count, 2, 'the rest goes on here');
    thread().hooks.told({ kind: 'hold', held: [] });
    await eventually('the rest begins anew', () => node.conntrack.eips.length === 0);
    assert.equal(node.conntrack.count, 1);
  });

  it('has all but the address of a new EIP while the network is asked about it', async () => {
    putPolicy('a');
    const kernel = node.kernel();
    const silence = Promise.withResolvers<undefined>();
    await start({ ...kernel, announcer: { ...kernel.announcer, probe: () => silence.promise } });
    const source = async () => (await kernel.nftables.read())?.elements.slot_eip4.get('0x28000007');
    await eventually('its rules are there', async () => (await source()) === eip);
    assert.deepEqual(await addresses(), []);
    silence.resolve(undefined);
    await eventually('its addresses are there', async () => (await addresses()).length === 2);
    assert.deepEqual(node.gate.answered(), []);
  });

  it('lets an EIP go when another machine turns out to have it, and keeps its pair', async () => {
    server.delete(policies, 'shop/web');
    const agent = await start();
    own(4);
    const machine = node.segment.host('66:00:00:00:00:99');
    machine.addresses.add(eip);
    // It is too busy to answer before the EIP is claimed.
    machine.losing = 2;
    putPolicy('a');
    await eventually('it is told with the policy', () => status().report?.problems?.[0]?.policy === 'shop/web');
    assert.equal(machine.losing, 0);
    assert.deepEqual(
      status().report?.problems?.map(({ reason }) => reason),
      ['EipInUse'],
    );
    await eventually(
      'only the pair is reported',
      () =>
        status()
          .report?.eips?.map(({ ip }) => ip)
          .join() === pair,
    );
    assert.deepEqual(await addresses(), [pair]);
    assert.ok(agent.events.some(({ reason }) => reason === 'EipInUse'));
  });

  it('reports a machine that claims an EIP of it, tells people, and says when it no longer does', async () => {
    const agent = await start();
    own(4);
    await eventually('its MAC address is reported', () => status().report?.macAddresses?.length === 1);
    const conflict = { ip: eip, mac: '66:00:00:00:00:99', interface: 'eth0' };
    thread().hooks.told({ kind: 'conflicts', conflicts: [conflict] });
    await eventually('it is reported', () => status().report?.conflicts?.length === 1);
    assert.deepEqual(status().report?.conflicts, [conflict]);
    assert.deepEqual(await addresses(), [eip, pair], 'the EIP is kept');
    assert.match(await agent.metrics(), /sallyport_eip_in_use\{eip="10.6.0.100",mac="66:00:00:00:00:99"\} 1/);
    const told = agent.events.find(({ reason }) => reason === 'EipInUse');
    assert.match(told?.note ?? '', /holds EIP 10\.6\.0\.100, and 66:00:00:00:00:99 claims it too/);
    thread().hooks.told({ kind: 'conflicts', conflicts: [] });
    await eventually('it is reported no more', () => status().report?.conflicts === undefined);
    assert.ok(agent.events.some(({ reason, type }) => reason === 'EipConflictEnded' && type === 'Normal'));
  });

  it('says that it notices losses late, counts it, and says when that is over', async () => {
    const agent = await start();
    const grant = (silenceMs: number) =>
      thread().hooks.told({ kind: 'silence', silenceMs, usualMs: 100, widestMs: 1_000 });
    grant(350);
    await eventually('it is reported', () => status().report?.detectionMilliseconds === 400);
    grant(250);
    grant(325);
    const metrics = await agent.metrics();
    assert.match(metrics, /^sallyport_failover_silence_seconds 0.325$/m);
    assert.match(metrics, /^sallyport_failover_silence_widenings_total 2$/m);
    grant(100);
    await eventually('it is reported no more', () => status().report?.detectionMilliseconds === undefined);
  });

  it('reports a family that is lost on an interface, tells people, and says when it is back', async () => {
    const agent = await start();
    thread().hooks.told({
      kind: 'uplink',
      losses: [{ interface: 'eth0', family: 6, cause: 'silent', nextHop: ip('fe80::1') }],
    });
    const lost = () => status().report?.problems?.find(({ reason }) => reason === 'UplinkLost');
    await eventually('it is reported', () => lost() !== undefined);
    assert.match(
      lost()?.message ?? '',
      /^Node a does not reach the outside in IPv6: router fe80::1 on eth0 is silent\./,
    );
    assert.match(await agent.metrics(), /sallyport_uplink_lost\{interface="eth0",family="ipv6"\} 1/);
    assert.ok(agent.events.some(({ reason, type }) => reason === 'UplinkLost' && type === 'Warning'));
    thread().hooks.told({ kind: 'uplink', losses: [] });
    await eventually('it is reported no more', () => lost() === undefined);
    assert.ok(agent.events.some(({ reason, type }) => reason === 'UplinkRestored' && type === 'Normal'));
  });

  it('sends packets to a new owner, also when the API knows nothing of it', async () => {
    await start();
    const before = await slot();
    thread().hooks.told({ kind: 'owner', eip, epoch: 4, node: 'a' });
    await eventually('slots lead elsewhere', async () => (await slot()) !== before);
  });

  it('keeps after a restart what the gate of the kernel holds', async () => {
    const first = await start();
    await eventually('the EIPs lie ready', async () => (await addresses()).length === 2);
    node.gate.hold([{ ip: eip, epoch: 9, isAnswered: true }], 10_000_000);
    await first.stop();
    running = [];
    await start();
    assert.deepEqual(thread().data.held, [{ eip, epoch: 9, mode: 'owned' }]);
  });
});
