import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import { finalizers } from '../../api/names.ts';
import { PolicyStatus } from '../../api/policy.ts';
import { gatewayObject, nodeObject, policyObject } from '../../core/testing/objects.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { EventRecorder } from '../../runtime/kube/event-recorder.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { createMetrics } from '../../runtime/process/metrics.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { createCaches } from '../caches.ts';
import type { PartDeps } from '../part.ts';
import { planPart } from './part.ts';

const core = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: '',
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const nodes = core('nodes', 'Node', false);
const policies = resourceOf('EgressPolicy');
const gateways = resourceOf('EgressGateway');
const tunnels = resourceOf('EgressTunnel');
const resources = [
  nodes,
  core('namespaces', 'Namespace', false),
  core('pods', 'Pod', true),
  ...Object.keys(kinds).filter(isKindName).map(resourceOf),
];
const clock = systemClock;

let server: TestApiServer;
let client: KubeClient;
before(async () => {
  server = await startTestApiServer({ resources });
  client = createKubeClient({ access: server.access, userAgent: 'test', clock, random: Math.random });
});
after(async () => {
  await client?.close();
  await server?.stop();
});

/** Test objects carry metadata as the API server gives it. */
const put = (resource: Resource, object: object) => server.put(resource, object as KubeObject);
const statusOf = (key: string): PolicyStatus => PolicyStatus.parse(Object(server.read(policies, key)).status ?? {});
const putPolicy = (key: string, gateway: string, generation = 1) => {
  const object = policyObject(key, { gateway, allocator: 'rr', uid: `uid-${key}` });
  put(policies, {
    ...object,
    metadata: { ...object.metadata, generation },
    status: Object(server.read(policies, key)).status,
  });
};

/** Runs the part on the server until the test is over. */
const withPart = async (work: () => Promise<void>): Promise<void> => {
  const log = createLog({ process: 'test', level: 'silent' });
  const metrics = createMetrics();
  const caches = createCaches({ client, clock, random: Math.random, onProblem: () => {} });
  const events = new EventRecorder({ client, clock, random: Math.random, controller: 'test', instance: 'test' });
  const deps: PartDeps = {
    client,
    caches,
    config: { current: Config.parse({}), changed: () => () => {} },
    site: { identity: 'test', namespace: 'sallyport', webhook: { port: 0 } },
    clock,
    random: Math.random,
    log,
    metrics,
    events,
  };
  const part = planPart(deps);
  const stop = new AbortController();
  const ended = Promise.all([caches.run(stop.signal), part.run(stop.signal)]);
  try {
    await eventually('the part is ready', () => part.missing().length === 0);
    await work();
  } finally {
    stop.abort();
    await ended;
  }
};

/** Makes a gateway on a node of its own that is ready. */
const gatewayOn = async (name: string, ipv4: readonly string[]) => {
  put(nodes, nodeObject(`${name}-node`, ['10.0.0.1'], { gateway: name }));
  put(gateways, gatewayObject(name, { ipv4, selector: { matchLabels: { gateway: name } } }));
  await eventually('the tunnel has addresses', () => Object(server.read(tunnels, `${name}-node`)).status?.mark);
  await client.applyStatus(
    tunnels,
    { metadata: { name: `${name}-node` }, status: { tunnel: { parent: { name: 'eth0' } } } } as KubeObject,
    { fieldManager: 'agent' },
  );
};

describe('the plan part', () => {
  it('writes statuses, and after a restart not one of them again', async () => {
    await withPart(async () => {
      await gatewayOn('first', ['10.6.1.1-10.6.1.9']);
      putPolicy('red/first', 'first');
      await eventually('the policy has an EIP', () => statusOf('red/first').eip?.ipv4 !== undefined);
      await eventually(
        'the gateway lists it',
        () => Object(server.read(gateways, 'first')).status?.ipUsage?.ipv4Free === 8,
      );
    });
    const writesBefore = server.requests('apply') + server.requests('patch') + server.requests('create');
    await withPart(async () => {});
    assert.equal(server.requests('apply') + server.requests('patch') + server.requests('create'), writesBefore);
  });

  it('leaves alone what others write into a status', async () => {
    await withPart(async () => {
      putPolicy('red/shared', 'first');
      await eventually('the policy has an EIP', () => statusOf('red/shared').eip?.ipv4 !== undefined);
      const shared = server.read(policies, 'red/shared');
      put(policies, { ...shared, status: { ...Object(shared).status, matchedPods: 4, node: 'forged' } });
      await eventually('the forged node is gone', () => statusOf('red/shared').node === 'first-node');
      assert.equal(statusOf('red/shared').matchedPods, 4);
    });
  });

  it('gets over conflicts, lost answers and faults of the server', async () => {
    await withPart(async () => {
      server.faults.add(
        { verb: 'apply', plural: 'egresspolicies' },
        { kind: 'answer', status: 409, reason: 'Conflict' },
      );
      server.faults.add({ verb: 'apply', plural: 'egresspolicies' }, { kind: 'lose-answer' });
      server.faults.add({ verb: 'apply', plural: 'egresspolicies' }, { kind: 'answer', status: 500 }, 2);
      for (const name of ['a', 'b', 'c']) putPolicy(`red/fault-${name}`, 'first');
      await eventually('all of them have an EIP', () =>
        ['a', 'b', 'c'].every((name) => statusOf(`red/fault-${name}`).eip?.ipv4 !== undefined),
      );
      const eips = ['a', 'b', 'c'].map((name) => statusOf(`red/fault-${name}`).eip?.ipv4);
      assert.equal(new Set(eips).size, 3);
    });
  });

  it('does not make a policy anew that is deleted while its status is written', async () => {
    await withPart(async () => {
      server.faults.add(
        { verb: 'apply', plural: 'egresspolicies' },
        { kind: 'answer', status: 404, reason: 'NotFound' },
      );
      putPolicy('red/gone', 'first');
      server.delete(policies, 'red/gone');
      putPolicy('red/stays', 'first');
      await eventually('the other policy has an EIP', () => statusOf('red/stays').eip?.ipv4 !== undefined);
      assert.equal(server.read(policies, 'red/gone'), undefined);
    });
  });

  it('keeps bindings through an API server that forgets its history', async () => {
    await withPart(async () => {
      const before = statusOf('red/stays');
      server.compact();
      server.breakWatches('gone');
      putPolicy('red/later', 'first');
      await eventually('a later policy has an EIP', () => statusOf('red/later').eip?.ipv4 !== undefined);
      assert.deepEqual(statusOf('red/stays').eip, before.eip);
    });
  });

  it('makes a tunnel that it may not make at first, and holds every gateway by its finalizer', async () => {
    await withPart(async () => {
      server.faults.add(
        { verb: 'create', plural: 'egresstunnels' },
        { kind: 'answer', status: 403, reason: 'Forbidden' },
        3,
      );
      await gatewayOn('second', ['10.6.2.1']);
      assert.deepEqual(server.read(tunnels, 'second-node')?.metadata.finalizers, [finalizers.tunnel]);
      await eventually('the gateway is held', () => {
        const held = server.read(gateways, 'second')?.metadata.finalizers ?? [];
        return held.includes(finalizers.gateway);
      });
      server.delete(gateways, 'second');
      await eventually('a gateway that nobody uses can go', () => server.read(gateways, 'second') === undefined);
      server.delete(nodes, 'second-node');
      await eventually('a tunnel goes with its node', () => server.read(tunnels, 'second-node') === undefined);
    });
  });
});
