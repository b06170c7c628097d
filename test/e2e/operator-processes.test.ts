/** The operator as a process: two replicas, kill -9, a server that goes away, admission, names in a real CoreDNS. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { programs } from '../../lab/setup/go-build.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import { webhookName } from '../../src/operator/admission.ts';
import { resources } from '../../src/operator/objects/kind.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';
import { webhookResource } from '../../src/runtime/serve/webhook-trust.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { freePort } from '../../src/runtime/testing/free-port.ts';
import { leads } from './controller-process.ts';
import { OperatorWorld } from './operator-world.ts';
import { tellOfProcesses } from './witness.ts';

const tcp = [{ name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' }];
const corefile = (port: number) => `.:${port} {
  errors
  bind 127.0.0.1
  reload 2s
}
`;

let world: OperatorWorld;
let coredns: ChildProcess | undefined;
const folder = mkdtempSync(join(tmpdir(), 'sallyport-operator-'));
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await OperatorWorld.start();
});
// A test that fails must not leave an operator to the next one: it would hold the lease.
afterEach(async () => {
  await world?.endOperators();
});
after(async () => {
  coredns?.kill('SIGKILL');
  await world?.stop();
  rmSync(folder, { recursive: true });
});

const versions = async (): Promise<string[]> => {
  const kinds = [resourceOf('BCSEgress'), resourceOf('BCSEgressController'), resources.deployments, resources.services];
  const objects = await Promise.all(kinds.map((kind) => world.list(kind)));
  return objects.flat().map(({ metadata }) => `${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`);
};

test('kill -9: the other replica takes over within the lease, goes on where it was left, and changes nothing', async () => {
  const first = await world.operator();
  const second = await world.operator();
  await world.egress('shop/orders', { tcp, http: [{ host: 'api.example.com', tls: true }] });
  await world.untilThere(resources.deployments, 'bcs-system/egress-controller');
  const replica = await world.replica('10.61.2.1');
  await world.until('shop/orders', 'Synced');
  await eventually('one of them leads', () => leads(first) || leads(second));
  const [leader, standby] = leads(first) ? [first, second] : [second, first];
  assert.deepEqual([leads(leader), leads(standby)], [true, false]);
  const before = await versions();
  assert.equal(await leader.end('SIGKILL'), 'SIGKILL');
  // What happens while nobody leads is made up for.
  await world.egress('shop/late', { http: [{ host: 'late.example.com' }] });
  await eventually('the standby leads', () => leads(standby), 60_000);
  await world.until('shop/late', 'Synced');
  const changed = (await versions()).filter((version) => !before.includes(version) && !version.startsWith('shop/late'));
  assert.deepEqual(
    changed.map((version) => version.split(' ')[0]),
    ['bcs-system/egress-controller'],
    'only its references',
  );
  await replica.silence();
  await world.until('shop/orders', 'Unknown');
  await replica.speak();
  // Both: the next test asks what a restart writes, and one that is stopped half-way has left something to do.
  await world.until('shop/orders', 'Synced');
  await world.until('shop/late', 'Synced');
  assert.equal(await standby.end('SIGTERM'), 0, 'a stop that is asked for is no failure');
});

test('a restart writes nothing, and an API server that comes back is served again', async () => {
  const before = await versions();
  let operator = await world.operator();
  await world.egress('shop/again', { http: [{ host: 'again.example.com' }] });
  await world.until('shop/again', 'Synced');
  const changed = (await versions()).filter(
    (version) => !before.includes(version) && !version.startsWith('shop/again'),
  );
  assert.deepEqual(
    changed.map((version) => version.split(' ')[0]),
    ['bcs-system/egress-controller'],
  );
  await world.plane.kill('kube-apiserver');
  await world.plane.start('kube-apiserver');
  await world.remove('BCSEgress', 'shop/again');
  // On a busy machine the server may be away for longer than the lease lasts; then Kubernetes starts the operator again.
  await eventually(
    'the object is released',
    async () => {
      if (operator.process.exitCode !== null) operator = await world.operator();
      return (await world.get(resourceOf('BCSEgress'), 'shop/again')) === undefined;
    },
    90_000,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; the operator said ${JSON.stringify(operator.lines.slice(-8))}`);
  });
});

test('admission: what is already lost is refused with the words of the status', async (t) => {
  const port = await freePort();
  const flags = [`--webhook-address=127.0.0.1:${port}`, `--webhook-url=https://127.0.0.1:${port}`];
  // While it is there and nobody answers, no later test could write anything.
  t.after(() => world.client.delete(webhookResource('Validating'), { name: webhookName }));
  await world.operator(...flags);
  await eventually(
    'the API server asks us',
    async () => {
      const asked = await world
        .egress('shop/bad', { tcp: [{ ...tcp[0], sourceport: 61_000, ips: '198.51.100.1' }] })
        .then(
          () => world.remove('BCSEgress', 'shop/bad'),
          (error: unknown) => String(error),
        );
      return typeof asked === 'string' && /PortReserved|61000 to 61499/.test(asked);
    },
    30_000,
  );
  const stolen = { tcp: [{ ...tcp[0], name: 'mine', ips: '198.51.100.1' }] };
  await assert.rejects(
    world.egress('hn1/thief', stolen),
    /rule mine: Port 3306 .* belongs to rule db of BCSEgress shop\/orders/,
  );
  await assert.rejects(
    world.egress('hn1/thief', { tcp: [{ ...tcp[0], sourceport: 3307 }] }),
    /db.example.com belongs to rule db/,
  );
  await world.egress('hn1/honest', { tcp: [{ ...tcp[0], sourceport: 3307, ips: '198.51.100.1' }] });
  await world.until('hn1/honest', 'Synced');
  await world.remove('BCSEgress', 'hn1/honest');
});

test('names: a real CoreDNS answers before a rule is Synced, and its Corefile is restored', async () => {
  const port = await freePort();
  const text = corefile(port);
  const key = 'kube-system/coredns';
  await world.apply(resources.configMaps, key, { data: { Corefile: text } });
  const stored = async (): Promise<string> => {
    const object = await world.get<KubeObject & { data?: { Corefile?: string } }>(resources.configMaps, key);
    return object?.data?.Corefile ?? '';
  };
  const file = join(folder, 'Corefile');
  writeFileSync(file, text);
  coredns = spawn((await programs()).coredns, ['-conf', file], { stdio: 'ignore' });
  await world.operator('--dns=coredns', `--dns-server=127.0.0.1:${port}`);
  await eventually('the name is in the Corefile', async () => (await stored()).includes('db.example.com'), 30_000);
  const pending = await world.until('shop/orders', 'Pending');
  assert.match(pending.reason ?? '', /db.example.com does not lead to/);
  // What a kubelet does with the ConfigMap.
  writeFileSync(file, await stored());
  const status = await world.until('shop/orders', 'Synced', 60_000);
  assert.ok(status.conditions?.some(({ type, status: value }) => type === 'Published' && value === 'True'));
  await world.remove('BCSEgress', 'shop/orders');
  await world.untilGone(resourceOf('BCSEgress'), 'shop/orders');
  await eventually('the Corefile is as it was', async () => (await stored()) === text);
});
