/**
 * The parts of the runtime that answer to the API server's own rules, on a real one: leader lease, certificates in a
 * Secret, admission with a certificate that changes while calls come in.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { CertificateKeeper } from '../../src/runtime/certs/keeper.ts';
import { defaultRotationPlan } from '../../src/runtime/certs/rotation.ts';
import { type Secret, secretResource } from '../../src/runtime/certs/secret.ts';
import { LeaderLease } from '../../src/runtime/control/lease.ts';
import { kubeLeaseStore, leaseResource } from '../../src/runtime/control/lease-record.ts';
import { ApiError } from '../../src/runtime/kube/api-error.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { coreResource, type KubeObject, type Resource } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { createLog } from '../../src/runtime/process/log.ts';
import { AdmissionServer } from '../../src/runtime/serve/admission.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';

const namespace = 'default';
const configMaps = coreResource('configmaps', 'ConfigMap', true);
const webhooks = (kind: 'Validating' | 'Mutating'): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: `${kind.toLowerCase()}webhookconfigurations`,
  kind: `${kind}WebhookConfiguration`,
  namespaced: false,
});
const log = createLog({ process: 'e2e', level: 'silent' });
const random = Math.random;
const clock = systemClock;

interface Lease extends KubeObject {
  readonly spec: { readonly holderIdentity?: string; readonly leaseTransitions?: number };
}

let plane: BareControlPlane;
let client: KubeClient;
before(async () => {
  plane = await startBareControlPlane();
  client = createKubeClient({ access: await loadAccess({ path: plane.kubeconfig }), userAgent: 'e2e', clock, random });
});
after(async () => {
  await client?.close();
  await plane?.stop();
});

test('one of two candidates leads; when it stops the other leads at once, through a restart of the API server', async (t) => {
  const ref = { namespace, name: 'e2e' };
  const timing = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 500 };
  const candidate = (identity: string) => {
    const stop = new AbortController();
    const lease = new LeaderLease({ store: kubeLeaseStore(client, ref), identity, clock, random, log, timing });
    const lost: string[] = [];
    const ended = lease.run(stop.signal, { onLeading: () => {}, onLost: (loss) => void lost.push(loss) });
    const end = () => {
      stop.abort();
      return ended;
    };
    t.after(end);
    return { lease, lost, end };
  };
  const holder = async () => (await client.get<Lease>(leaseResource, ref))?.spec;

  const first = candidate('first');
  await eventually('the first leads', () => first.lease.isLeader());
  const second = candidate('second');
  await plane.kill('kube-apiserver');
  await plane.start('kube-apiserver');
  await eventually('the lease is renewed after the restart', async () => (await holder())?.holderIdentity === 'first');
  assert.deepEqual([first.lease.isLeader(), second.lease.isLeader(), first.lost], [true, false, []]);

  await first.end();
  await eventually('the second leads', () => second.lease.isLeader());
  assert.deepEqual(await holder().then((spec) => [spec?.holderIdentity, spec?.leaseTransitions]), ['second', 1]);
  await second.end();
  assert.equal((await holder())?.holderIdentity ?? '', '', 'a lease that was given back has no holder');
});

test('two replicas agree on one certificate, and the API server trusts it', async () => {
  const secret = { namespace, name: 'e2e-certificate' };
  const plan = { ...defaultRotationPlan, commonName: 'e2e', dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
  const keeper = () => new CertificateKeeper({ client, secret, plan, clock, random, log });
  const signal = AbortSignal.timeout(60_000);
  const [one, two] = await Promise.all([keeper().refresh(signal), keeper().refresh(signal)]);
  assert.equal(one.leaf.certificatePem, two.leaf.certificatePem);

  const server = new AdmissionServer(
    {
      clock,
      log,
      handlers: {
        '/validate': ({ name = '' }) =>
          name.startsWith('bad')
            ? {
                kind: 'deny',
                reason: 'NameNotAllowed',
                message: 'metadata.name: names that start with bad are not allowed',
              }
            : { kind: 'allow', warnings: ['this is only a test'] },
        '/mutate': () => ({
          kind: 'patch',
          operations: [{ op: 'add', path: '/metadata/labels', value: { seen: 'yes' } }],
        }),
      },
    },
    one.leaf,
  );
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const configure = async (caBundlePem: string) => {
    for (const [kind, path] of [
      ['Validating', '/validate'],
      ['Mutating', '/mutate'],
    ] as const) {
      await client.apply(webhooks(kind), webhookManifest(kind, `https://127.0.0.1:${port}${path}`, caBundlePem), {
        fieldManager: 'e2e',
      });
    }
  };
  try {
    await configure(one.caBundlePem);
    const create = (name: string) => client.create<KubeObject>(configMaps, configMap(name));
    // A new configuration reaches the server's admission chain a moment after it is stored.
    const made = await eventuallyValue('the webhook to be asked', async (attempt) => {
      const object = await create(`good-${attempt}`);
      return object.metadata.labels?.seen === 'yes' ? object : undefined;
    });
    assert.equal(made.metadata.labels?.seen, 'yes');
    await assert.rejects(create('bad-one'), (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.reason, 'NameNotAllowed');
      assert.match(error.message, /names that start with bad are not allowed/);
      return true;
    });

    // A new certificate of the same authority while calls come in: no call fails.
    const stored = (await client.get<Secret>(secretResource, secret)) ?? assert.fail('no Secret');
    const kept = Object.entries(stored.data ?? {}).filter(([key]) => !key.startsWith('tls.'));
    await client.update(secretResource, { ...stored, data: Object.fromEntries(kept) });
    let isChanging = true;
    const calls = (async () => {
      let count = 0;
      for (; isChanging || count < 10; count += 1) await create(`during-${count}`);
      return count;
    })();
    const renewed = await keeper().refresh(signal);
    assert.notEqual(renewed.leaf.certificatePem, one.leaf.certificatePem);
    server.setCertificate(renewed.leaf);
    await configure(renewed.caBundlePem);
    isChanging = false;
    assert.ok((await calls) >= 10);
    assert.ok(new X509Certificate(renewed.leaf.certificatePem).checkIP('127.0.0.1'));
  } finally {
    for (const kind of ['Validating', 'Mutating'] as const) await client.delete(webhooks(kind), { name: 'e2e' });
    await server.close();
  }
});

function configMap(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
}

function webhookManifest(kind: 'Validating' | 'Mutating', url: string, caBundlePem: string): KubeObject {
  const webhook = {
    name: 'e2e.sallyport.test',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Fail',
    clientConfig: { url, caBundle: Buffer.from(caBundlePem).toString('base64') },
    rules: [
      { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'], scope: 'Namespaced' },
    ],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  };
  const manifest = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: 'e2e' },
  };
  return { ...manifest, webhooks: [webhook] } as KubeObject;
}

async function eventuallyValue<T>(what: string, probe: (attempt: number) => Promise<T | undefined>): Promise<T> {
  let value: T | undefined;
  let attempt = 0;
  await eventually(what, async () => {
    value = await probe(attempt++);
    return value !== undefined;
  });
  return value ?? assert.fail(what);
}
