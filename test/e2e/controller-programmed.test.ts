/**
 * The condition Programmed, and the number of pods in the status, on a real API server with a real controller. The
 * agents are played: a report says up to which revision the kernel of a node is in step, and which EIPs it answers for.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import type { RunningController } from './controller-process.ts';
import { conditionOf, World } from './controller-world.ts';
import { deletePod, makePod, makePodNamespace } from './plain-pods.ts';
import { tellOfProcesses } from './witness.ts';

let world: World;
let controller: RunningController;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  controller = await world.controller();
  await world.gatewayNodes('gate', 1);
  await world.gatewayNodes('worker', 2, { egress: 'no' });
  await world.gateway('g', { ipv4: ['10.9.1.1-10.9.1.200'] });
  await makePodNamespace(world, 'shop');
});
after(async () => {
  await world?.stop();
});

const nodes = ['gate1', 'worker1', 'worker2'];

/** All EIPs of the pool: the one gateway node holds whatever is given out. */
const eips = Array.from({ length: 200 }, (_, index) => ({ ip: `10.9.1.${index + 1}`, epoch: 0 }));

/** The revision that a policy has now: an agent that says it has applied it. */
const revisionOf = async (key: string): Promise<string> => {
  const [namespace, name = ''] = key.split('/');
  const ref = name === '' ? { name: namespace ?? '' } : { namespace, name };
  const policy = await world.client.get(resourceOf(name === '' ? 'EgressClusterPolicy' : 'EgressPolicy'), ref);
  return policy?.metadata.resourceVersion ?? '';
};
const reasonOf = async (key: string) => conditionOf(await world.policyStatus(key), 'Programmed')?.reason;
const untilReason = (key: string, reason: string): Promise<void> =>
  eventually(`Programmed of ${key} is ${reason}`, async () => (await reasonOf(key)) === reason);
const messageOf = async (key: string) => conditionOf(await world.policyStatus(key), 'Programmed')?.message ?? '';
/** All agents report that they are in step with what is there now. */
const allInStep = async (key: string): Promise<void> => {
  const revision = await revisionOf(key);
  const report = { appliedRevision: revision, appliedClusterRevision: revision, eips };
  for (const node of nodes) await world.agent(node, { report });
};

/** How many statuses of policies the controller has written. */
const statusWrites = async (): Promise<number> => {
  const lines = (await controller.page('/metrics')).split('\n');
  const written =
    /^sallyport_api_requests_total\{verb="apply",resource="egress(cluster)?policies[^"]*",status="200"\} /;
  return lines.filter((line) => written.test(line)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

test('a policy is programmed when its gateway node and the nodes of its pods have reported it, and not before', async () => {
  await makePod(world.client, 'shop/p1', { labels: { app: 'shop-first' }, node: 'worker1' });
  await makePod(world.client, 'shop/p2', { labels: { app: 'shop-first' }, node: 'worker2' });
  for (const node of nodes) await world.agent(node, { report: { appliedRevision: '1' } });
  const writesBefore = await statusWrites();
  await world.policy('shop/first', { gateway: 'g', allocator: 'rr' });
  await world.allocated(['shop/first']);
  assert.equal(await reasonOf('shop/first'), 'WaitingForNodes');
  assert.match(await messageOf('shop/first'), /gate1, worker1, worker2/);
  const report = { appliedRevision: await revisionOf('shop/first') };
  for (const node of ['gate1', 'worker1']) await world.agent(node, { report });
  await eventually('only the last node is named', async () =>
    /kernel of worker2 yet/.test(await messageOf('shop/first')),
  );
  await world.agent('worker2', { report });
  await eventually('the EIP is waited for', async () => /gate1 does not answer/.test(await messageOf('shop/first')));
  await world.agent('gate1', { report: { ...report, eips } });
  await untilReason('shop/first', 'KernelsInStep');
  assert.equal((await world.policyStatus('shop/first'))?.matchedPods, 2);
  // The first status, the names of the nodes that are waited for, the EIP, and the end of it.
  assert.ok((await statusWrites()) - writesBefore <= 4, 'a bounded number of writes');
});

test('agents that report the condition which was written do not make another one', async () => {
  await allInStep('shop/first');
  await eventually('the reports were read', async () => {
    const tunnels = await world.list('EgressTunnel');
    return tunnels.every(({ status }) => status?.report?.appliedClusterRevision !== undefined);
  });
  const before = await world.versions();
  // What comes after the reports in every queue: when it is there, so would be a write because of them.
  await world.policy('shop/later', { gateway: 'g', allocator: 'rr' });
  await world.allocated(['shop/later']);
  assert.equal((await world.versions())['EgressPolicy shop/first'], before['EgressPolicy shop/first']);
});

test('a change of the spec or of the binding has to be reported again, for both kinds of policies', async () => {
  for (const key of ['shop/edited', 'edited']) {
    await world.policy(key, { gateway: 'g', allocator: 'rr' });
    await world.allocated([key]);
    await allInStep(key);
    await untilReason(key, 'KernelsInStep');
    await world.policy(key, { gateway: 'g', ipv4: '10.9.1.150' });
    await eventually('the new EIP is waited for', async () => {
      const status = await world.policyStatus(key);
      return status?.eip?.ipv4 === '10.9.1.150' && conditionOf(status, 'Programmed')?.reason === 'WaitingForNodes';
    });
    await allInStep(key);
    await untilReason(key, 'KernelsInStep');
    await world.deletePolicy(key);
  }
});

test('what a node could not do is the reason, and goes when it is done', async () => {
  const revision = await revisionOf('shop/first');
  const problem = { reason: 'NftRefused', message: 'The kernel refused an element.', policy: 'shop/first' };
  await world.agent('worker1', { report: { appliedRevision: revision, eips, problems: [problem] } });
  await untilReason('shop/first', 'NftRefused');
  assert.equal(await messageOf('shop/first'), 'Node worker1: The kernel refused an element.');
  assert.equal(conditionOf(await world.policyStatus('shop/later'), 'Programmed')?.reason === 'NftRefused', false);
  await allInStep('shop/first');
  await untilReason('shop/first', 'KernelsInStep');
});

test('a controller that starts again neither asks again nor writes', async () => {
  await allInStep('shop/later');
  await untilReason('shop/later', 'KernelsInStep');
  await untilReason('shop/first', 'KernelsInStep');
  await world.untilGatewaysShow('shop/first', 'shop/later');
  await controller.end('SIGTERM');
  const before = await world.versions();
  controller = await world.controller();
  assert.deepEqual(await world.versions(), before);
  await world.policy('shop/after', { gateway: 'g', allocator: 'rr' });
  await world.allocated(['shop/after']);
  await allInStep('shop/after');
  await untilReason('shop/after', 'KernelsInStep');
});

test('pods that are replaced, as by a restart of their Deployment, change the count and nothing else', async () => {
  const before = await world.policyStatus('shop/first');
  await makePod(world.client, 'shop/p3', { labels: { app: 'shop-first' }, node: 'worker1', ip: '10.244.0.3' });
  await eventually('three pods', async () => (await world.policyStatus('shop/first'))?.matchedPods === 3);
  await deletePod(world.client, 'shop/p1');
  await deletePod(world.client, 'shop/p2');
  await eventually('one pod', async () => (await world.policyStatus('shop/first'))?.matchedPods === 1);
  const { matchedPods: _, ...after } = (await world.policyStatus('shop/first')) ?? {};
  assert.deepEqual({ ...after, matchedPods: 2 }, before);
});

test('a policy whose gateway nodes are all lost is not called programmed, though their agents are not given up yet', async () => {
  const names = await world.gatewayNodes('dim', 2, { pool: 'dim' });
  await world.gateway('dim', { ipv4: ['10.9.2.1'], labels: { pool: 'dim' } });
  await world.policy('shop/dim', { gateway: 'dim' });
  const holder = (await world.allocated(['shop/dim'])).get('shop/dim')?.node;
  // Agents that watch each other: the controller leaves it to them to move the EIP, and gives them time.
  const electorate = { generation: 1, voters: names, apiVotes: false };
  const appliedRevision = await revisionOf('shop/dim');
  for (const name of names) {
    const held = name === holder ? [{ ip: '10.9.2.1', epoch: 0 }] : [];
    await world.agent(name, { report: { electorate, appliedRevision, eips: held } });
  }
  await untilReason('shop/dim', 'KernelsInStep');
  for (const name of names) await world.node(name, { labels: { pool: 'dim' }, isReady: false });
  await eventually('the gateway says that its nodes are not ready', async () => {
    const { nodeList = [] } = (await world.get('EgressGateway', 'dim'))?.status ?? {};
    return nodeList.length === 2 && nodeList.every(({ status }) => status === 'NodeNotReady');
  });
  await untilReason('shop/dim', 'GatewayNodeNotReady');
  for (const name of names) await world.node(name, { labels: { pool: 'dim' } });
  await untilReason('shop/dim', 'KernelsInStep');
});
