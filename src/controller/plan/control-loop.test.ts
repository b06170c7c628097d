import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import { finalizers } from '../../api/names.ts';
import { PolicyStatus } from '../../api/policy.ts';
import { gatewayObject, nodeObject, policyObject } from '../../core/testing/objects.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { followMembers } from '../membership/members.ts';
import { coreResources, startControlLoop } from '../testing.ts';
import { planLoop } from './control-loop.ts';
import { Heartbeats } from './heartbeats.ts';

const [nodes, , pods] = coreResources as [Resource, Resource, Resource]; // The list has these three.
const policies = resourceOf('EgressPolicy');
const gateways = resourceOf('EgressGateway');
const tunnels = resourceOf('EgressTunnel');
const resources = [...coreResources, ...Object.keys(kinds).filter(isKindName).map(resourceOf)];
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
  const running = await startControlLoop({ access: server.access }, (deps) =>
    planLoop(deps, followMembers(deps.caches), new Heartbeats(deps.caches, deps.clock)),
  );
  try {
    await work();
  } finally {
    await running.stop();
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

  it('puts back what others write over its part of a status', async () => {
    await withPart(async () => {
      putPolicy('red/shared', 'first');
      await eventually('the policy has an EIP', () => statusOf('red/shared').eip?.ipv4 !== undefined);
      const shared = server.read(policies, 'red/shared');
      put(policies, { ...shared, status: { ...Object(shared).status, matchedPods: 4, node: 'forged' } });
      await eventually('the forged node is gone', () => statusOf('red/shared').node === 'first-node');
      await eventually('the forged count is gone', () => statusOf('red/shared').matchedPods === 0);
    });
  });

  it('counts the pods of a policy in its first status, and again when they change', async () => {
    const putPod = (name: string) =>
      put(pods, {
        metadata: { namespace: 'red', name, labels: { app: 'counted' } },
        spec: { nodeName: 'x' },
        status: { phase: 'Running', podIP: '10.244.0.1' },
      });
    await withPart(async () => {
      putPod('p1');
      const before = server.requests('apply');
      putPolicy('red/counted', 'first');
      await eventually('the policy has an EIP', () => statusOf('red/counted').eip?.ipv4 !== undefined);
      assert.equal(statusOf('red/counted').matchedPods, 1);
      assert.equal(server.requests('apply') - before, 1);
      putPod('p2');
      await eventually('there are two', () => statusOf('red/counted').matchedPods === 2);
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

  it('gives nothing from a gateway that it does not hold yet: it could be deleted under the policy', async () => {
    await withPart(async () => {
      server.faults.add({ verb: 'apply', plural: 'egressgateways' }, { kind: 'answer', status: 500 }, 3);
      const heldWhenBound: boolean[] = [];
      await gatewayOn('slow', ['10.6.2.1']);
      putPolicy('red/slow', 'slow');
      await eventually('the policy has an EIP', () => {
        const isHeld = server.read(gateways, 'slow')?.metadata.finalizers?.includes(finalizers.gateway) === true;
        const isBound = statusOf('red/slow').eip?.ipv4 !== undefined;
        if (isBound) heldWhenBound.push(isHeld);
        return isBound;
      });
      assert.deepEqual(heldWhenBound, [true]);
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
