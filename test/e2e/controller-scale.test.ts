/** Many policies at once: everything is given, everything is given back, and the API server is not asked too often. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import type { RunningController } from './controller-process.ts';
import { World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

let world: World;
let controller: RunningController;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  controller = await world.controller();
  await world.gatewayNodes('node', 3);
});
after(async () => {
  await world?.stop();
});

const keysOf = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => (index % 10 === 0 ? `${prefix}-${index}` : `default/${prefix}-${index}`));

const createAll = async (keys: readonly string[], gateway: string) => {
  for (let index = 0; index < keys.length; index += 20) {
    await Promise.all(keys.slice(index, index + 20).map((key) => world.policy(key, { gateway, allocator: 'rr' })));
  }
};

const statusOf = async (gateway: string) => (await world.get('EgressGateway', gateway))?.status;

/** Writes of statuses so far, by resource. */
const writes = async (): Promise<number> => {
  const lines = (await controller.page('/metrics')).split('\n');
  const counts = lines.filter((line) =>
    /^sallyport_api_requests_total\{verb="apply",resource="egress(cluster)?policies/.test(line),
  );
  return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

test('R00008: 100 policies of both kinds on 100 EIPs get one each, twice, and nothing leaks when all are deleted', async () => {
  await world.gateway('hundred', { ipv4: ['10.9.0.1-10.9.0.100'] });
  const keys = keysOf('hundred', 100);
  for (const round of ['first', 'second']) {
    const before = await writes();
    await createAll(keys, 'hundred');
    const statuses = await world.allocated(keys);
    assert.equal(new Set(keys.map((key) => statuses.get(key)?.eip?.ipv4)).size, 100, `${round} round: one EIP each`);
    assert.equal(new Set(keys.map((key) => statuses.get(key)?.slot)).size, 100, `${round} round: one slot each`);
    await eventually('the gateway lists all of them', async () => {
      const status = await statusOf('hundred');
      const counts = (status?.nodeList ?? []).map(({ eips = [] }) => eips.length).toSorted();
      return status?.ipUsage?.ipv4Free === 0 && counts.join() === '33,33,34';
    });
    assert.ok((await writes()) - before <= 300, 'at most three writes per policy');
    await Promise.all(keys.map((key) => world.deletePolicy(key)));
    await eventually('all EIPs are free again', async () => {
      const status = await statusOf('hundred');
      return status?.ipUsage?.ipv4Free === 100 && (status.nodeList ?? []).every(({ eips = [] }) => eips.length === 0);
    });
  }
});

test('70 policies on a pool of 50: the surplus shares', async () => {
  await world.gateway('fifty', { ipv4: ['10.9.1.1-10.9.1.50'] });
  const keys = keysOf('fifty', 70);
  await createAll(keys, 'fifty');
  const statuses = await world.allocated(keys);
  const uses = Map.groupBy(keys, (key) => statuses.get(key)?.eip?.ipv4);
  assert.equal(uses.size, 50);
});

test('a node carries more than 127 EIPs', async () => {
  await world.gatewayNodes('single', 1, { pool: 'single' });
  await world.gateway('single', { ipv4: ['10.9.4.0/22'], labels: { pool: 'single' } });
  const keys = keysOf('single', 150);
  await createAll(keys, 'single');
  const statuses = await world.allocated(keys);
  assert.deepEqual(new Set(keys.map((key) => statuses.get(key)?.node)), new Set(['single1']));
  await eventually('the gateway lists 150 EIPs on it', async () => {
    const [node] = (await statusOf('single'))?.nodeList ?? [];
    return node?.eips?.length === 150;
  });
});

test('metrics say how many policies are served, and how much of a pool is free', async () => {
  const text = await controller.page('/metrics');
  assert.match(text, /^sallyport_policies\{reason="EipAllocated"\} \d+$/m);
  assert.match(text, /^sallyport_gateway_pool_free_addresses\{gateway="hundred",family="ipv4"\} 100$/m);
  assert.match(text, /^sallyport_reconcile_seconds_count\{controller="plan",outcome="done"\} \d+$/m);
});

test('a deleted policy that a foreign finalizer holds keeps neither its EIP nor anybody else from working', async () => {
  await world.gateway('odd', { ipv4: ['10.9.2.1-10.9.2.9'] });
  await world.policy('default/held', { gateway: 'odd', allocator: 'rr' });
  const held = (await world.allocated(['default/held'])).get('default/held')?.eip?.ipv4;
  const policies = resourceOf('EgressPolicy');
  const ref = { namespace: 'default', name: 'held' };
  const finalizers = (value: readonly string[]) =>
    ({ kind: 'merge', value: { metadata: { finalizers: value } } }) as const;
  await world.client.patch(policies, ref, finalizers(['example.org/audit']));
  await world.deletePolicy('default/held');
  await eventually('its EIP is free although the object is still there', async () => {
    const status = await statusOf('odd');
    return status?.ipUsage?.ipv4Free === 9;
  });
  await world.policy('default/next', { gateway: 'odd', ipv4: held ?? '' });
  const next = (await world.allocated(['default/next'])).get('default/next');
  assert.equal(next?.eip?.ipv4, held);
  await world.client.patch(policies, ref, finalizers([]));
});
