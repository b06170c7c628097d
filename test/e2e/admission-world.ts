/**
 * A real API server that asks our webhooks at a URL, as it does when the controller runs outside the cluster, in the
 * cluster of the admission cases. Replicas run in the process of the test, so that it can look at them.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { admissionServer, webhookLoop } from '../../src/controller/admission/control-loop.ts';
import { configOf, type Manifest, policy, usualCluster } from '../../src/controller/admission/testing/cluster.ts';
import { type ControllerCaches, createControllerCaches } from '../../src/controller/loop/caches.ts';
import { TestConfig } from '../../src/controller/testing.ts';
import { type Secret, secretResource } from '../../src/runtime/certs/secret.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { createMetrics } from '../../src/runtime/metrics/metrics.ts';
import { type Clock, systemClock } from '../../src/runtime/process/clock.ts';
import { createLog } from '../../src/runtime/process/log.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { freePort } from '../../src/runtime/testing/free-port.ts';

/** Where the Secret with the certificates is. */
export const secretRef = { namespace: 'default', name: 'sallyport-webhook' };

const root = join(import.meta.dirname, '..', '..');

/** For replicas: looks at the certificates are a minute apart; here it is about a second. Limits stay as they are. */
const clock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => systemClock.after(delayMs >= 10_000 ? delayMs / 50 : delayMs, callback),
};

/** How a command ended. */
export interface Outcome {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Something that runs. */
export interface Running {
  stop(): Promise<void>;
}

/** What a test can do with the world. */
export interface AdmissionWorld {
  readonly client: KubeClient;
  readonly caches: ControllerCaches;
  readonly kubeconfig: string;
  /** The port of the URL at which the API server asks. */
  readonly port: number;
  /** Runs kubectl with the objects as its input; never throws for an exit code. */
  kubectl(args: readonly string[], ...objects: readonly object[]): Promise<Outcome>;
  /** The same for commands that must succeed; returns what was printed. */
  succeed(args: readonly string[], ...objects: readonly object[]): Promise<string>;
  /** Changes the configuration file in force. */
  setFamilies(families: 'both' | 'ipv4'): void;
  /** Starts a replica: it serves, and publishes if it leads. */
  startReplica(isLeader: boolean, port?: number): Running;
  stop(): Promise<void>;
}

/** Starts the world, without a replica and without objects. The Secret, if given, is there before the first replica. */
export async function startAdmissionWorld(secret?: Secret): Promise<AdmissionWorld> {
  const plane = await startBareControlPlane();
  const random = Math.random;
  const client = createKubeClient({
    access: await loadAccess({ path: plane.kubeconfig }),
    userAgent: 'e2e',
    clock: systemClock,
    random,
  });
  const caches = createControllerCaches({ client, clock: systemClock, random, onProblem: () => {} });
  const port = await freePort();
  const ending = new AbortController();
  const config = new TestConfig(configOf('both'));
  const kubectl: AdmissionWorld['kubectl'] = (args, ...objects) =>
    run(plane.kubectl, ['--kubeconfig', plane.kubeconfig, ...args], objects);
  const succeed: AdmissionWorld['succeed'] = async (args, ...objects) => {
    const { exitCode, output, errors } = await kubectl(args, ...objects);
    assert.equal(exitCode, 0, `kubectl ${args.join(' ')}: ${errors}`);
    return output;
  };
  await succeed(['apply', '--server-side', '-f', join(root, 'charts', 'sallyport', 'files', 'crds')]);
  await succeed(['wait', '--for=condition=Established', '--timeout=180s', 'crd', '--all']);
  if (secret !== undefined) await client.create(secretResource, secret);
  const cachesEnded = caches.run(ending.signal);
  await caches.synced;
  return {
    client,
    caches,
    kubeconfig: plane.kubeconfig,
    port,
    kubectl,
    succeed,
    setFamilies: (families) => config.set(configOf(families)),
    startReplica(isLeader, listenPort = port) {
      const log = createLog({ process: 'e2e', level: 'silent' });
      const webhook = { host: '127.0.0.1', port: listenPort };
      const site = { identity: 'e2e', namespace: secretRef.namespace, webhook };
      const deps = { client, caches, config, site, clock, random, log, metrics: createMetrics() };
      const options = { url: `https://127.0.0.1:${port}` };
      const stopping = new AbortController();
      const parts = [admissionServer(deps, options), ...(isLeader ? [webhookLoop(deps, options)] : [])];
      const ended = parts.map((part) => part.run(stopping.signal));
      return {
        async stop() {
          stopping.abort();
          await Promise.all(ended);
        },
      };
    },
    async stop() {
      ending.abort();
      await cachesEnded.catch(() => undefined);
      await client.close();
      await plane.stop();
    },
  };
}

/** Returns when the API server asks the webhooks; it takes a moment to learn of a configuration. */
export async function untilAsked({ kubectl }: AdmissionWorld): Promise<void> {
  const refused = policy('default/probe', { egressGatewayName: 'nowhere' });
  await eventually(
    'the API server asks the webhooks',
    async () => (await kubectl(['create', '--dry-run=server', '-f', '-'], refused)).errors.includes('GatewayNotFound'),
    60_000,
  );
}

/** Creates the objects of the usual cluster through the webhooks and returns when the caches know them. */
export async function fill(world: AdmissionWorld): Promise<void> {
  for (const manifest of usualCluster) {
    const { status, ...object } = manifest;
    await world.succeed(['create', '-f', '-'], object);
    if (status !== undefined) await world.succeed(statusPatch(manifest, status));
  }
  const { policies, clusterInfos } = world.caches;
  await eventually('the caches have caught up', () => policies.store.get('shop/web')?.status?.node === 'n1');
  await eventually('the cluster info is known', () => clusterInfos.store.get('default')?.status !== undefined);
}

/** The arguments of kubectl that write a status. */
export const statusPatch = ({ kind, metadata }: Manifest, status: unknown): string[] => [
  'patch',
  kind.toLowerCase(),
  metadata.name,
  ...(metadata.namespace === undefined ? [] : ['-n', metadata.namespace]),
  '--subresource=status',
  '--type=merge',
  '-p',
  JSON.stringify({ status }),
];

function run(program: string, args: readonly string[], objects: readonly object[]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { timeout: 60_000 });
    const [output, errors]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    child.on('error', reject);
    child.on('close', (exitCode) =>
      resolve({ exitCode, output: Buffer.concat(output).toString(), errors: Buffer.concat(errors).toString() }),
    );
    child.stdin.end(objects.map((object) => JSON.stringify(object)).join('\n'));
  });
}
