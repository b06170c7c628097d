/** Whom the API server trusts: certificates that change under load, several replicas, and a controller as a process. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import { resourceOf } from '../../src/api/kinds.ts';
import { gateway, policy } from '../../src/controller/admission/testing/cluster.ts';
import { webhookKinds, webhookName, webhookSets } from '../../src/controller/admission/webhooks.ts';
import { type Authority, createAuthority, issue } from '../../src/runtime/certs/authority.ts';
import { type Secret, secretResource } from '../../src/runtime/certs/secret.ts';
import { isInvalid } from '../../src/runtime/kube/api-error.ts';
import { publishTrust, type WebhookConfiguration, webhookResource } from '../../src/runtime/serve/webhook-trust.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { freePort } from '../../src/runtime/testing/free-port.ts';
import { type AdmissionWorld, type Running, secretRef, startAdmissionWorld, untilAsked } from './admission-world.ts';

const dayMs = 24 * 60 * 60 * 1000;
const limitMs = 30_000;

let world: AdmissionWorld;
let replica: Running;

before(async () => {
  world = await startAdmissionWorld(await oldSecret());
  replica = world.startReplica(true);
  await untilAsked(world);
  await world.succeed(['create', '-f', '-'], gateway('edge', { ippools: { ipv4: ['10.6.1.1'] } }));
});
after(async () => {
  await replica?.stop();
  await world?.stop();
});

test('authority and leaf change while requests come in, and none of them fails', async () => {
  const state = { isChanging: true, calls: 0 };
  const load = (async () => {
    for (; state.isChanging || state.calls < 100; state.calls += 1) {
      await world.client.create(resourceOf('EgressPolicy'), loadPolicy(state.calls));
    }
  })();
  let during = 0;
  try {
    // The successor is two days old, so it signs as soon as it is seen. Nothing of it is shown before it is trusted,
    // because the leaf of the old authority stays.
    const next = await authorityFrom(2);
    await changeSecret((data) => ({
      ...data,
      'next.crt': base64(next.certificatePem),
      'next.key': base64(next.keyPem),
    }));
    await eventually('both configurations trust the next authority', () => isTrusted(next.certificatePem), limitMs);
    await changeSecret(({ 'tls.crt': _crt, 'tls.key': _key, ...data }) => data);
    await eventually(
      'the server shows a leaf of the next authority',
      async () =>
        new X509Certificate((await shownBy(world.port)) ?? '').checkIssued(new X509Certificate(next.certificatePem)),
      limitMs,
    );
    during = state.calls;
  } finally {
    state.isChanging = false;
    await load;
  }
  console.log(`${state.calls} policies created, ${during} of them while certificates changed`);
  assert.ok(during > 0);
});

test('every replica shows the same certificate, and one that does not lead answers too', async () => {
  const port = await freePort();
  const other = world.startReplica(false, port);
  try {
    await eventually('the other replica listens', async () => (await shownBy(port)) !== undefined);
    assert.equal(await shownBy(port), await shownBy(world.port));
    const trusted = Buffer.from((await bundles())[0] ?? '', 'base64').toString();
    await replica.stop();
    const target = { kind: 'url', base: `https://127.0.0.1:${port}` } as const;
    for (const set of webhookSets) await publishTrust(world.client, set, target, trusted, AbortSignal.timeout(limitMs));
    await untilAsked(world);
  } finally {
    await other.stop();
    replica = world.startReplica(true);
  }
  await untilAsked(world);
});

test('a bundle that somebody has taken out is back', async () => {
  const trusted = await bundles();
  const operations = [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }] as const;
  await world.client.patch(webhookResource('Validating'), { name: webhookName }, { kind: 'json', operations });
  await eventually('it is back', async () => (await bundles()).join() === trusted.join(), limitMs);
});

test('where the chart has made the configurations, the bundle is written and nothing else', async () => {
  await replica.stop();
  const signal = AbortSignal.timeout(limitMs);
  const other = await authorityFrom(0);
  const target = { kind: 'service' } as const;
  const earlier = await stored('Validating');
  const validating = webhookSets.find(({ kind }) => kind === 'Validating');
  assert.ok(validating);
  assert.equal(await publishTrust(world.client, validating, target, other.certificatePem, signal), 'written');
  assert.equal(await publishTrust(world.client, validating, target, other.certificatePem, signal), 'unchanged');
  const caBundle = base64(other.certificatePem);
  const wanted = earlier.webhooks?.map((one) => ({ ...one, clientConfig: { ...one.clientConfig, caBundle } }));
  assert.deepEqual((await stored('Validating')).webhooks, wanted);
  // What a patch comes to that was made for another list than the one that is there.
  const operations = [{ op: 'test', path: '/webhooks/0/name', value: 'another' }] as const;
  const patch = world.client.patch(webhookResource('Validating'), { name: webhookName }, { kind: 'json', operations });
  await assert.rejects(patch, isInvalid);
  replica = world.startReplica(true);
  await untilAsked(world);
});

test('bin/sallyport controller, as a process outside the cluster, makes the configurations and answers', async () => {
  await replica.stop();
  for (const kind of webhookKinds) await world.client.delete(webhookResource(kind), { name: webhookName });
  await world.client.delete(secretResource, secretRef);
  const program = join(import.meta.dirname, '..', '..', 'bin', 'sallyport');
  const args = [
    'controller',
    ...['--kubeconfig', world.kubeconfig, '--namespace', secretRef.namespace, '--health-address', '127.0.0.1:0'],
    ...['--webhook-address', `127.0.0.1:${world.port}`, '--webhook-url', `https://127.0.0.1:${world.port}`],
  ];
  const controller = spawn(program, args, { stdio: 'ignore' });
  try {
    await untilAsked(world);
    const users = world.kubectl(['delete', '--dry-run=server', 'egw', 'edge']);
    assert.match(
      (await users).errors,
      /Warning: .*Gateway edge serves EgressPolicy default\/load-0, .* until they are gone/,
    );
  } finally {
    const ended = once(controller, 'exit');
    controller.kill('SIGTERM');
    await ended;
  }
  const { errors } = await world.kubectl(['create', '-f', '-'], policy('default/late', { egressGatewayName: 'edge' }));
  assert.match(errors, /failed calling webhook .*connection refused/);
});

const loadPolicy = (index: number) => ({
  apiVersion: 'egressgateway.spidernet.io/v1beta1',
  kind: 'EgressPolicy',
  metadata: { name: `load-${index}`, namespace: 'default' },
  spec: { egressGatewayName: 'edge', appliedTo: { podSelector: { matchLabels: { app: `load-${index}` } } } },
});

function authorityFrom(daysAgo: number): Promise<Authority> {
  const now = new Date(Date.now() - daysAgo * dayMs);
  return createAuthority({ commonName: `from-${daysAgo}`, lifetimeDays: 3650, now });
}

/** A Secret whose authority is past two thirds of its life: a successor is due. */
async function oldSecret(): Promise<Secret> {
  const signer = await authorityFrom(2600);
  const service = `${secretRef.name}.${secretRef.namespace}.svc`;
  const leaf = await issue(signer, {
    commonName: secretRef.name,
    dnsNames: [service, `${service}.cluster.local`],
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    lifetimeDays: 365,
    now: new Date(),
  });
  const data = {
    'signer.crt': base64(signer.certificatePem),
    'signer.key': base64(signer.keyPem),
    'tls.crt': base64(leaf.certificatePem),
    'tls.key': base64(leaf.keyPem),
  };
  return { apiVersion: 'v1', kind: 'Secret', metadata: secretRef, type: 'Opaque', data };
}

type Data = Readonly<Record<string, string>>;

async function changeSecret(change: (data: Data) => Data): Promise<void> {
  const secret = (await world.client.get<Secret>(secretResource, secretRef)) ?? assert.fail('no Secret');
  await world.client.update(secretResource, { ...secret, data: change(secret.data ?? {}) });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function stored(kind: (typeof webhookKinds)[number]): Promise<WebhookConfiguration> {
  const found = await world.client.get<WebhookConfiguration>(webhookResource(kind), { name: webhookName });
  return found ?? assert.fail(`no ${kind} configuration`);
}

/** The bundles of all webhooks, base64. */
async function bundles(): Promise<readonly (string | undefined)[]> {
  const all = await Promise.all(webhookKinds.map(stored));
  return all.flatMap(({ webhooks = [] }) => webhooks.map(({ clientConfig }) => clientConfig.caBundle));
}

const isTrusted = async (certificatePem: string): Promise<boolean> =>
  (await bundles()).every((bundle) => Buffer.from(bundle ?? '', 'base64').includes(certificatePem));

/** The certificate that a replica shows now, PEM; undefined when nobody listens. */
function shownBy(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    // Trust is not the question here: the API server has to trust it, and the test looks at who signed.
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate();
      socket.end();
      resolve(new X509Certificate(raw).toString());
    });
    socket.on('error', () => resolve(undefined));
  });
}
