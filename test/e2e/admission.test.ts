/**
 * Admission on a real API server: every refusal and warning as kubectl shows it, what is filled in, and what goes
 * through while nobody answers. Certificates are in admission-trust.test.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Case } from '../../src/controller/admission/testing/case.ts';
import { cases } from '../../src/controller/admission/testing/cases.ts';
import {
  gateway,
  isSameObject,
  type Manifest,
  policy,
  usualCluster,
} from '../../src/controller/admission/testing/cluster.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import {
  type AdmissionWorld,
  fill,
  type Outcome,
  type Running,
  startAdmissionWorld,
  statusPatch,
  untilAsked,
} from './admission-world.ts';

let world: AdmissionWorld;
let replica: Running;

before(async () => {
  world = await startAdmissionWorld();
  replica = world.startReplica(true);
  await untilAsked(world);
  await fill(world);
});
after(async () => {
  await replica?.stop();
  await world?.stop();
});

describe('every refusal and warning, as kubectl shows it', () => {
  for (const one of cases) {
    test(`${one.rule}: ${one.title}`, async () => {
      world.setFamilies(one.families ?? 'both');
      const undo = await arrange(one.meanwhile ?? []);
      try {
        const { exitCode, errors } = await attempt(one);
        if (one.reason === undefined) {
          assert.equal(exitCode, 0, errors);
          assert.ok(errors.includes(`Warning: ${one.message}`), errors);
        } else {
          assert.equal(exitCode, 1, errors);
          assert.ok(errors.includes(`Error from server (${one.reason})`), errors);
          assert.ok(errors.includes(one.message), errors);
        }
      } finally {
        await undo();
        world.setFamilies('both');
      }
    });
  }

  test('a second cluster info is refused by the schema', async () => {
    const { errors } = await world.kubectl(['create', '-f', '-'], {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressClusterInfo',
      metadata: { name: 'second' },
    });
    assert.match(errors, /metadata\.name must be "default": there is one EgressClusterInfo per cluster/);
  });
});

/** Sends the request of a case without writing anything. */
function attempt({ object, operation }: Case): Promise<Outcome> {
  const dryRun = '--dry-run=server';
  const { status: _, ...written } = object;
  if (operation === 'delete') return world.kubectl(['delete', dryRun, '-f', '-'], written);
  if (operation === 'status') {
    const status = object.kind === 'EgressTunnel' ? { mark: null } : object.status;
    return world.kubectl([...statusPatch(object, status), dryRun]);
  }
  const isThere = usualCluster.some((other) => isSameObject(other, object));
  return world.kubectl([isThere ? 'replace' : 'create', dryRun, '-f', '-'], written);
}

/** Makes gateways otherwise than usual; the function that is returned undoes it. */
async function arrange(others: readonly Manifest[]): Promise<() => Promise<void>> {
  for (const other of others) {
    const { deletionTimestamp, ...metadata } = other.metadata;
    const isUsual = usualCluster.some((usual) => isSameObject(usual, other));
    await world.succeed([isUsual ? 'replace' : 'create', '-f', '-'], { ...other, metadata });
    if (deletionTimestamp !== undefined) await world.succeed(['delete', other.kind, metadata.name, '--wait=false']);
    await eventually(`${metadata.name} is known as it is now`, () => {
      const view = world.caches.gateways.store.get(metadata.name)?.view;
      return isUsual ? view?.spec?.isClusterDefault === false : view?.isDeleting === true;
    });
  }
  return async () => {
    for (const usual of usualCluster.filter((one) => others.some((other) => isSameObject(one, other)))) {
      await world.succeed(['replace', '-f', '-'], usual);
    }
  };
}

describe('what is filled in', () => {
  test('a gateway gets default EIPs and our finalizer, and keeps that of the user', async () => {
    const object = gateway(
      'filled',
      { ippools: { ipv4: ['10.7.1.8-10.7.1.9'], ipv6: ['fd00:71::8-fd00:71::9'] } },
      { finalizers: ['example.com/kept'] },
    );
    const made = JSON.parse(await world.succeed(['create', '--dry-run=server', '-o', 'json', '-f', '-'], object));
    assert.deepEqual(made.metadata.finalizers, ['example.com/kept', 'egressgateway.spidernet.io/egressgateway']);
    assert.equal(made.spec.ippools.ipv4DefaultEIP, '10.7.1.8');
    assert.equal(made.spec.ippools.ipv6DefaultEIP, 'fd00:71::8');
  });

  test('a manifest without a default EIP can be applied again and again, and the default stays', async () => {
    const object = gateway('again', { ippools: { ipv4: ['10.7.1.1-10.7.1.4'] } });
    const defaultEip = ['get', 'egw', 'again', '-o', 'jsonpath={.spec.ippools.ipv4DefaultEIP}'];
    await world.succeed(['create', '-f', '-'], object);
    await world.succeed(
      ['create', '-f', '-'],
      policy('shop/again', { egressGatewayName: 'again', egressIP: { ipv4: '10.7.1.1' } }),
    );
    for (const verb of ['replace', 'apply', 'apply']) {
      await world.succeed([verb, '-f', '-'], object);
      assert.equal(await world.succeed(defaultEip), '10.7.1.1', verb);
    }
  });

  test('policies get the cluster default', async () => {
    for (const key of ['shop/filled', 'filled']) {
      const made = await world.succeed(['create', '--dry-run=server', '-o', 'json', '-f', '-'], policy(key, {}));
      assert.equal(JSON.parse(made).spec.egressGatewayName, 'edge');
    }
  });

  test('a spec that is no object is refused in the words of the schema', async () => {
    const create = ['create', '--validate=false', '--dry-run=server', '-f', '-'];
    for (const key of ['shop/text', 'text']) {
      const { exitCode, errors } = await world.kubectl(create, { ...policy(key, {}), spec: 'all pods' });
      assert.equal(exitCode, 1);
      assert.match(errors, /spec in body must be of type object/);
    }
  });
});

test('gateways and their policies can be applied in one go, and deleted in one go', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `together-${index}`);
  const objects = names.flatMap((name, index) => [
    gateway(name, { ippools: { ipv4: [`10.7.2.${index + 1}`] } }),
    policy(`shop/${name}`, { egressGatewayName: name, egressIP: { ipv4: `10.7.2.${index + 1}` } }),
  ]);
  await world.succeed(['apply', '-f', '-'], ...objects);
  await world.succeed(['delete', '--wait=false', '-f', '-'], ...objects.toReversed());
});

test('slices that our own loops write are not sent to the webhook', async () => {
  const slice = cases.find(({ rule }) => rule === 'slice-by-hand')?.object ?? assert.fail('no case');
  const apply = async (manager: string): Promise<string> => {
    const args = ['apply', '--server-side', `--field-manager=${manager}`, '--dry-run=server', '-f', '-'];
    return (await world.kubectl(args, slice)).errors;
  };
  assert.match(await apply('somebody'), /Warning: endpoints:/);
  assert.equal(await apply('sallyport-slices'), '');
});

describe('while no controller runs', () => {
  before(() => replica.stop());

  test('specs cannot be changed, and the API server says why; a policy that names its gateway is asked about once', async () => {
    for (const [spec, path] of [[{ egressGatewayName: 'edge' }, 'validate'] as const, [{}, 'mutate'] as const]) {
      const { exitCode, errors } = await world.kubectl(['create', '-f', '-'], policy('shop/late', spec));
      assert.equal(exitCode, 1);
      assert.match(errors, /failed calling webhook "egresspolicies\.egressgateway\.spidernet\.io"/);
      assert.match(errors, new RegExp(`/${path}\\?`));
      assert.match(errors, /connect: connection refused/);
    }
  });

  test('labels, heartbeats, slices and the deletion of policies go through', async () => {
    await world.succeed(['label', 'egw', 'edge', 'seen=yes']);
    await world.succeed(['label', 'egp', 'web', '-n', 'shop', 'seen=yes']);
    const tunnel = usualCluster.find(({ kind }) => kind === 'EgressTunnel') ?? assert.fail('no tunnel');
    await world.succeed(statusPatch(tunnel, { phase: 'Ready', lastHeartbeatTime: '2026-01-01T00:00:00Z' }));
    const slice = cases.find(({ rule }) => rule === 'slice-by-hand')?.object ?? assert.fail('no case');
    await world.succeed(['create', '-f', '-'], slice);
    await world.succeed(['delete', 'egp', 'web', '-n', 'shop']);
  });
});
