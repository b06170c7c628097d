/** Both parts on an API server in memory: what the chart would have made is there, and the test asks as the API server does. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:https';
import { type TestContext, test } from 'node:test';
import { isKindName, type KindName, kinds, resourceOf } from '../../api/kinds.ts';
import { secretResource } from '../../runtime/certs/secret.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import type { Resource } from '../../runtime/kube/resource.ts';
import { createMetrics } from '../../runtime/metrics/metrics.ts';
import { type Clock, systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { type WebhookConfiguration, type WebhookKind, webhookResource } from '../../runtime/serve/webhook-trust.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import { freePort } from '../../runtime/testing/free-port.ts';
import { createControllerCaches } from '../loop/caches.ts';
import type { ControlLoop } from '../loop/control-loop.ts';
import { coreResources, TestConfig } from '../testing.ts';
import { admissionServer, webhookLoop } from './control-loop.ts';
import { configOf, gateway, type Manifest, policy, usualCluster } from './testing/cluster.ts';
import { requestFor } from './testing/request.ts';
import { webhookConfiguration, webhookKinds, webhookName } from './webhooks.ts';

const ourKinds: readonly KindName[] = Object.keys(kinds).filter(isKindName);
const resourceFor = (name: string): Resource =>
  (isKindName(name) ? resourceOf(name) : coreResources.find(({ kind }) => kind === name)) ?? assert.fail(name);

interface Setting {
  readonly server: TestApiServer;
  /** Asks a webhook as the API server does: with the bundle that is published, by the name of the Service. */
  readonly ask: (path: string, object: Manifest, operation?: 'write' | 'delete') => Promise<Answer>;
  readonly setConfig: (families: 'both' | 'ipv4') => void;
  readonly start: (part: ControlLoop) => { stop(): Promise<void> };
  /** `second` is another replica on the same address. */
  readonly parts: { readonly admission: ControlLoop; readonly second: ControlLoop; readonly webhooks: ControlLoop };
  readonly lines: readonly string[];
}

interface Answer {
  readonly warnings?: readonly string[];
  readonly allowed: boolean;
  readonly status?: { readonly reason: string; readonly message: string };
}

async function setUp(t: TestContext, clock: Clock = systemClock): Promise<Setting> {
  const server = await startTestApiServer({
    resources: [...coreResources, ...ourKinds.map(resourceOf), secretResource, ...webhookKinds.map(webhookResource)],
  });
  for (const manifest of usualCluster) server.put(resourceFor(manifest.kind), manifest);
  const random = (): number => 0;
  const client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random });
  const caches = createControllerCaches({ client, clock: systemClock, random, onProblem: () => {} });
  const config = new TestConfig(configOf('both'));
  const lines: string[] = [];
  const port = await freePort();
  const deps = {
    client,
    caches,
    clock,
    random,
    metrics: createMetrics(),
    site: { identity: 'test', namespace: 'sallyport', webhook: { host: '127.0.0.1', port } },
    log: createLog({
      process: 'test',
      level: 'info',
      destination: { write: (line) => void lines.push(JSON.parse(line).msg) },
    }),
    config,
  };
  const stops: (() => Promise<void>)[] = [];
  const start = (part: Pick<ControlLoop, 'run'>) => {
    const ending = new AbortController();
    const ended = part.run(ending.signal);
    const stop = async (): Promise<void> => {
      ending.abort();
      await ended.catch((error: unknown) => {
        if (error !== ending.signal.reason) throw error;
      });
    };
    stops.push(stop);
    return { stop };
  };
  start(caches);
  t.after(async () => {
    for (const stop of stops.toReversed()) await stop();
    await client.close();
    await server.stop();
  });
  const ask: Setting['ask'] = async (path, object, operation) => {
    const ca = Buffer.from(bundlesOf(server, 'Validating')[0] ?? '', 'base64').toString();
    const review = {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: requestFor(object, usualCluster, operation),
    };
    const body = await post({ port, path, ca, body: JSON.stringify(review, (_, value) => value ?? null) });
    return JSON.parse(body).response;
  };
  return {
    server,
    ask,
    start,
    lines,
    parts: { admission: admissionServer(deps), second: admissionServer(deps), webhooks: webhookLoop(deps) },
    setConfig: (families) => config.set(configOf(families)),
  };
}

const bundlesOf = (server: TestApiServer, kind: WebhookKind): readonly (string | undefined)[] => {
  // A parse boundary: only this test and the part write these objects.
  const stored = server.read(webhookResource(kind), webhookName) as WebhookConfiguration | undefined;
  return (stored?.webhooks ?? []).map(({ clientConfig }) => clientConfig.caBundle);
};

/** What the chart makes: whole configurations without a bundle. */
const putConfigurations = (server: TestApiServer): void => {
  for (const kind of webhookKinds) server.put(webhookResource(kind), webhookConfiguration(kind, {}));
};

test('the parts make a certificate, publish it and answer, and follow the cluster and the configuration', async (t) => {
  const { server, ask, start, parts, setConfig } = await setUp(t);
  putConfigurations(server);
  assert.deepEqual(parts.admission.missing().at(-1), 'admission server');
  start(parts.admission);
  start(parts.webhooks);
  await eventually(
    'both parts are ready',
    () => [...parts.admission.missing(), ...parts.webhooks.missing()].length === 0,
  );

  const free = gateway('bare', {});
  const warnings = async () => (await ask('/validate', free, 'delete')).warnings ?? [];
  assert.deepEqual(await warnings(), []);
  server.put(
    resourceOf('EgressPolicy'),
    policy('shop/late', { egressGatewayName: 'bare', egressIP: { useNodeIP: true } }),
  );
  await eventually('a new policy counts', async () => (await warnings()).length > 0);
  server.delete(resourceOf('EgressPolicy'), 'shop/late');
  await eventually('and no longer when it is gone', async () => (await warnings()).length === 0);

  const six = gateway('six', { ippools: { ipv6: ['fd00:7::1'] } });
  assert.equal((await ask('/validate', six)).allowed, true);
  setConfig('ipv4');
  assert.equal((await ask('/validate', six)).status?.reason, 'FamilyDisabled');
});

test('configurations that come after the controller are completed, and nothing fails until then', async (t) => {
  const { server, start, parts, lines } = await setUp(t, fastClock(100));
  start(parts.webhooks);
  await eventually('it has looked', () => parts.webhooks.missing().length === 0);
  assert.equal(lines.filter((line) => line === 'webhook configuration sallyport is missing').length, 2);
  putConfigurations(server);
  await eventually('both trust us', () => webhookKinds.every((kind) => bundlesOf(server, kind).every(Boolean)));
});

test('a port that is in use ends the part with the sentence about it', async (t) => {
  const { start, parts } = await setUp(t);
  start(parts.admission);
  await eventually('the first listens', () => parts.admission.missing().length === 0);
  await assert.rejects(parts.second.run(AbortSignal.timeout(60_000)), { code: 'PORT_IN_USE' });
});

interface Post {
  readonly port: number;
  readonly path: string;
  readonly ca: string;
  readonly body: string;
}

function post({ port, path, ca, body }: Post): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port,
        path,
        ca,
        servername: 'sallyport-webhook.sallyport.svc',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        agent: new Agent({ keepAlive: false }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve(Buffer.concat(chunks).toString()));
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}
