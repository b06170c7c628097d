import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { KubeClient } from '../kube/client.ts';
import { createKubeClient } from '../kube/http-client.ts';
import { ManualClock, systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { startTestApiServer, type TestApiServer } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import { parseCertificate } from './authority.ts';
import { CertificateKeeper, type ServingCertificate } from './keeper.ts';
import { type CertificatePlan, defaultRotationPlan } from './rotation.ts';
import { readState, type Secret, secretResource } from './secret.ts';

const ref = { namespace: 'kube-system', name: 'sallyport-webhook' };
const plan: CertificatePlan = {
  ...defaultRotationPlan,
  commonName: 'sallyport-webhook',
  dnsNames: ['sallyport.kube-system.svc'],
};
const never = new AbortController().signal;
let server: TestApiServer;
let client: KubeClient;

before(async () => {
  server = await startTestApiServer({ resources: [secretResource] });
  client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random: Math.random });
});

beforeEach(async () => {
  server.faults.clear();
  await client.delete(secretResource, ref);
});

after(async () => {
  await client.close();
  await server.stop();
});

function keeper(clock = new ManualClock(), wanted = plan) {
  const expiries: Date[] = [];
  let failures = 0;
  const made = new CertificateKeeper({
    client,
    secret: ref,
    plan: wanted,
    clock,
    random: () => 0,
    log: createLog({ process: 'test', level: 'silent' }),
    hooks: {
      expires: (leaf) => void expiries.push(leaf),
      failed() {
        failures += 1;
      },
    },
  });
  return { keeper: made, clock, expiries, failures: () => failures };
}

test('the first refresh creates a Secret that other tools can read, the second changes nothing', async () => {
  const { keeper: first, expiries } = keeper();
  const certificate = await first.refresh(never);
  const secret = await client.get<Secret>(secretResource, ref);
  const text = (name: string): string => Buffer.from(secret?.data?.[name] ?? '', 'base64').toString();
  assert.equal(text('tls.crt'), certificate.leaf.certificatePem);
  assert.equal(text('tls.key'), certificate.leaf.keyPem);
  assert.equal(text('ca.crt'), certificate.caBundlePem);
  assert.deepEqual(await first.refresh(never), certificate);
  const later = await client.get<Secret>(secretResource, ref);
  assert.equal(later?.metadata.resourceVersion, secret?.metadata.resourceVersion);
  assert.deepEqual(expiries.at(-1), parseCertificate(certificate.leaf.certificatePem).validToDate);
});

test('replicas that start at the same time agree on one certificate', async () => {
  const certificates = await Promise.all(Array.from({ length: 4 }, () => keeper().keeper.refresh(never)));
  assert.equal(new Set(certificates.map(({ leaf }) => leaf.certificatePem)).size, 1);
  assert.equal(new Set(certificates.map(({ caBundlePem }) => caBundlePem)).size, 1);
});

test('a Secret with rubbish in it is repaired, and its labels are kept', async () => {
  const rubbish = Buffer.from('-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n').toString('base64');
  await client.create<Secret>(secretResource, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...ref, labels: { team: 'network' } },
    data: { 'tls.crt': rubbish, 'signer.crt': rubbish, 'retired.crt': rubbish },
  });
  await keeper().keeper.refresh(never);
  const secret = await client.get<Secret>(secretResource, ref);
  assert.deepEqual(secret?.metadata.labels, { team: 'network' });
  assert.ok(readState(secret).leaf);
});

test('the loop renews in time, hands on only changes, and every replica gets the same', async () => {
  const clock = new ManualClock();
  const replicas = [keeper(clock), keeper(clock)];
  const stop = new AbortController();
  const received = replicas.map((): ServingCertificate[] => []);
  for (const { keeper: replica } of replicas) await replica.refresh(never);
  const runs = replicas.map(({ keeper: replica }, index) =>
    replica.run(stop.signal, (certificate) => received[index]?.push(certificate)),
  );
  await clock.advance(60_000);
  await eventually('both have looked', () => replicas.every(({ expiries }) => expiries.length === 2));
  assert.deepEqual(received.flat(), []);
  await clock.advance(250 * 24 * 60 * 60 * 1000);
  await eventually('both have renewed', async () => {
    await clock.advance(60_000);
    return received.every((list) => list.length === 1);
  });
  assert.equal(new Set(received.flat().map(({ leaf }) => leaf.certificatePem)).size, 1);
  stop.abort();
  await Promise.all(runs);
});

test('the loop survives an API server that fails, and counts it', async () => {
  const { keeper: replica, clock, failures, expiries } = keeper();
  await replica.refresh(never);
  const stop = new AbortController();
  const run = replica.run(stop.signal, () => assert.fail('nothing has changed'));
  server.faults.add({ plural: 'secrets' }, { kind: 'answer', status: 403 }, 2);
  await clock.advance(60_000);
  await eventually('two failures', async () => {
    await clock.advance(5_000);
    return failures() === 2;
  });
  await eventually('it has looked again', async () => {
    await clock.advance(5_000);
    return expiries.length === 2;
  });
  stop.abort();
  await run;
});

test('a plan that leaves no time to learn a new authority is refused', () => {
  assert.throws(() => keeper(new ManualClock(), { ...plan, authorityLifetimeDays: 3 }), {
    code: 'CONFIG_INVALID',
    message: /lifetime of 3 days is too short/,
  });
});
