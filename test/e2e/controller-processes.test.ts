/** The controller as a process: two replicas, restarts, a server that goes away, and what it does with bad input. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { leads, type RunningController } from './controller-process.ts';
import { bindingOf, leases, World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

const keys = ['default/a', 'default/b', 'default/c', 'd'];
let world: World;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
});
// A test that fails must not leave a controller to the next one: it would hold the lease.
afterEach(async () => {
  await world?.endControllers();
});
after(async () => {
  await world?.stop();
});

const holder = async () => {
  type Lease = KubeObject & { spec?: { holderIdentity?: string } };
  const lease = await world.client.get<Lease>(leases, { namespace: 'sallyport', name: 'sallyport-controller' });
  return lease?.spec?.holderIdentity || undefined;
};
const bindings = async () => {
  const statuses = await world.allocated(keys);
  return keys.map((key) => bindingOf(statuses.get(key)));
};
const requests = async (controller: RunningController) => {
  const lines = (await controller.page('/metrics')).split('\n');
  const counts = lines.filter((line) => line.startsWith('sallyport_api_requests_total{'));
  return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

test('two replicas: the other one takes over within the lease when the leader is killed, and changes nothing', async (t) => {
  const first = await world.controller();
  const second = await world.controller();
  await world.gatewayNodes('node', 3);
  await world.gateway('gateway', { ipv4: ['10.10.0.1-10.10.0.9'] });
  for (const key of keys) await world.policy(key, { gateway: 'gateway', allocator: 'rr' });
  const before = await bindings();
  // Somebody has bound the policies; what it said about itself may still be on its way to us.
  await eventually('one of them leads', () => leads(first) || leads(second));
  const [leader, standby] = leads(first) ? [first, second] : [second, first];
  assert.deepEqual([leads(leader), leads(standby)], [true, false]);

  const killedAtMs = performance.now();
  assert.equal(await leader.end('SIGKILL'), 'SIGKILL');
  await eventually('the standby leads', () => leads(standby), 60_000);
  // The lease lasts 30 s and is looked at every 2.4 s; a machine that has other things to do needs longer for it.
  t.diagnostic(`took over after ${Math.round(performance.now() - killedAtMs)} ms`);
  await world.policy('default/after', { gateway: 'gateway', allocator: 'rr' });
  await world.allocated(['default/after']);
  assert.deepEqual(await bindings(), before);
  await world.deletePolicy('default/after');

  assert.equal(await standby.end('SIGTERM'), 0, 'a stop that is asked for is no failure');
  assert.equal(await holder(), undefined, 'the lease is given back');
});

test('a restart writes nothing', async () => {
  const controller = await world.leader();
  // The one before was stopped right after a policy had gone; its view of the gateway may be left to this one.
  await world.untilGatewaysShow(...keys);
  const before = await world.versions();
  const bound = await bindings();
  assert.equal(await controller.end('SIGTERM'), 0);
  await world.leader();
  assert.deepEqual(await world.versions(), before, 'every key found at the start was tried, and none was written');
  assert.deepEqual(await bindings(), bound);
});

test('an API server that goes away and comes back is not stormed, and moves nothing', async () => {
  const controller = await world.leader();
  const bound = await bindings();
  const before = await requests(controller);
  const killedAtMs = performance.now();
  await world.plane.kill('kube-apiserver');
  // While the server is away, the kernel may lend its port to an outgoing connection of anybody for a moment.
  const start = () => world.plane.start('kube-apiserver');
  await eventually(
    'the server is back',
    () =>
      start().then(
        () => true,
        () => false,
      ),
    60_000,
  );
  await eventually(
    'a policy is served again',
    async () => {
      await world.policy('default/again', { gateway: 'gateway', allocator: 'rr' }).catch(() => undefined);
      const status = await world.policyStatus('default/again').catch(() => undefined);
      return status?.eip?.ipv4 !== undefined;
    },
    60_000,
  );
  const lastedS = (performance.now() - killedAtMs) / 1000;
  assert.deepEqual(await bindings(), bound);
  assert.equal(controller.process.exitCode, null, 'a lease that was lost meanwhile is no reason to end');
  const asked = (await requests(controller)) - before;
  // Fourteen watches and the lease, each with a back-off of its own that ends at one attempt per second.
  assert.ok(asked < 15 * (lastedS * 2 + 8), `${asked} requests in ${lastedS.toFixed(1)} s`);
  await world.deletePolicy('default/again');
});

test('a controller that loses its lease stops writing, goes on answering webhooks, and leads again', async () => {
  const controller = await world.leader();
  const bound = await bindings();
  const lease = { namespace: 'sallyport', name: 'sallyport-controller' };
  const hold = (holderIdentity: string) =>
    world.client.patch(leases, lease, { kind: 'merge', value: { spec: { holderIdentity } } });
  await hold('somebody-else');
  await eventually('it does not lead any more', () => !leads(controller), 60_000);
  await world.policy('default/again', { gateway: 'gateway', allocator: 'rr' });
  assert.match(await controller.page('/readyz'), /^ok$/m, 'admission stays in its Service');
  assert.equal((await world.policyStatus('default/again'))?.eip?.ipv4, undefined);

  await hold('');
  await eventually('it leads again', () => leads(controller), 60_000);
  await world.allocated(['default/again']);
  assert.deepEqual(await bindings(), bound);
  assert.equal(controller.process.exitCode, null);
  await world.deletePolicy('default/again');
});

test('tunnels found at the start that share an address or mark are repaired, and those without a node go', async () => {
  const tunnels = resourceOf('EgressTunnel');
  const status = { mark: '0x26ab0000', phase: 'Init', tunnel: { ipv4: '172.31.7.7', mac: '66:65:00:00:00:07' } };
  for (const name of ['twin1', 'twin2', 'orphan1']) {
    if (name !== 'orphan1') await world.node(name, { labels: {} });
    await world.client.create(tunnels, { metadata: { name } });
    await world.client.applyStatus<KubeObject & { status: object }>(
      tunnels,
      { metadata: { name }, status },
      { fieldManager: 'e2e' },
    );
  }
  await world.leader();
  await eventually('the orphan is gone', async () => (await world.get('EgressTunnel', 'orphan1')) === undefined);
  await eventually('no two tunnels share anything', async () => {
    const all = await world.list('EgressTunnel');
    const different = (values: readonly (string | undefined)[]) => new Set(values).size === all.length;
    return (
      all.every((tunnel) => tunnel.status?.tunnel?.ipv4 && tunnel.status.mark) &&
      different(all.map((tunnel) => tunnel.status?.mark)) &&
      different(all.map((tunnel) => tunnel.status?.tunnel?.ipv4)) &&
      different(all.map((tunnel) => tunnel.status?.tunnel?.mac))
    );
  });
});

test('a configuration file is followed while the process runs, and a bad one changes nothing', async () => {
  const path = world.config({ tunnelIpv4Subnet: '172.31.0.0/16' });
  const controller = await world.leader('--config', path);
  world.config({ tunnelIpv4Subnet: 'nonsense' });
  await eventually('the fault is logged in one sentence', () =>
    controller.lines.some(({ level, msg }) => level === 'error' && msg.includes('tunnelIpv4Subnet is "nonsense"')),
  );
  world.config({ tunnelIpv4Subnet: '172.30.0.0/16' });
  await eventually('tunnels have addresses of the new range', async () => {
    const tunnels = await world.list('EgressTunnel');
    return tunnels.every(({ status }) => status?.tunnel?.ipv4?.startsWith('172.30.') === true);
  });
});

test('bad input is one sentence and exit code 2', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, '127.0.0.1', resolve);
  });
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      `--health-address=127.0.0.1:${port}`,
      /health server cannot listen on 127\.0\.0\.1 port \d+: another process uses it/,
    ],
    [`--webhook-address=127.0.0.1:${port}`, /cannot listen on 127\.0\.0\.1 port \d+: another process uses it/],
    [
      '--config=/nowhere/config.yaml',
      /\/nowhere\/config\.yaml: the configuration cannot be read: there is no such file/,
    ],
  ];
  try {
    for (const [flag, sentence] of cases) {
      const controller = await world.startController(flag);
      await eventually('the process ends', () => controller.process.exitCode !== null, 30_000);
      assert.equal(controller.process.exitCode, 2, flag);
      assert.match(controller.lines.at(-1)?.msg ?? '', sentence);
    }
  } finally {
    taken.close();
  }
});
