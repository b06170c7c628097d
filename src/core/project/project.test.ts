import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { matches } from '../cluster/labels.ts';
import { emptySet, formatSet } from '../ip/index.ts';
import { gatewayObject, policyObject } from '../testing/objects.ts';
import {
  projectClusterInfo,
  projectClusterPolicy,
  projectGateway,
  projectNode,
  projectPod,
  projectPolicy,
  projectTunnel,
} from './index.ts';

describe('projections', () => {
  it('take anything for a spec and a status without an exception', () => {
    const anything = fc.oneof(fc.anything(), fc.jsonValue());
    fc.assert(
      fc.property(anything, anything, (spec, status) => {
        const object = { metadata: { name: 'x', namespace: 'red' }, spec, status };
        for (const project of [projectGateway, projectPolicy, projectClusterPolicy]) {
          const view = project(object);
          assert.ok(view.spec !== undefined || view.problems.length > 0);
        }
        projectTunnel(object, 'fresh');
        projectClusterInfo(object);
      }),
      { numRuns: 300 },
    );
  });
});

describe('projectPolicy', () => {
  it('reads a whole policy', () => {
    const view = projectPolicy({
      ...policyObject('red/p', { gateway: 'g', allocator: 'rr', destSubnet: ['198.51.100.7/24'], priority: 3, at: 5 }),
      status: { eip: { ipv4: '10.6.1.1', ipv6: '' }, node: 'a', slot: 9 },
    });
    assert.deepEqual([view.key, view.namespace, view.problems], ['red/p', 'red', []]);
    assert.deepEqual(view.spec?.address, { kind: 'allocated', allocator: 'rr' });
    assert.deepEqual(formatSet(view.spec?.destinations ?? emptySet), ['198.51.100.0/24']);
    assert.deepEqual(
      [view.recorded.eip, view.recorded.node, view.recorded.slot],
      [{ ipv4: '10.6.1.1', ipv6: undefined }, 'a', 9],
    );
  });

  it('takes the empty allocator for default, and an empty destination list for everything', () => {
    const { spec } = projectPolicy(policyObject('red/p', { allocator: '', destSubnet: [] }));
    assert.deepEqual(spec?.address, { kind: 'allocated', allocator: 'default' });
    assert.equal(spec?.destinations, undefined);
  });

  it('reads the spec once for each generation of an object, and the status always', () => {
    const spec = { egressGatewayName: 'edge', appliedTo: { podSubnet: ['10.1.0.0/16', 'x'] } };
    const metadata = { name: 'web', namespace: 'shop', uid: 'u', generation: 2 };
    const before = projectPolicy({ metadata, spec });
    const after = projectPolicy({ metadata, spec: { ...spec }, status: { slot: 7, node: 'a' } }, before);
    assert.deepEqual(after, projectPolicy({ metadata, spec, status: { slot: 7, node: 'a' } }));
    assert.equal(after.spec, before.spec);
    for (const other of [{ generation: 3 }, { uid: 'v' }, { uid: undefined }]) {
      const moved = { metadata: { ...metadata, ...other }, spec: { ...spec, egressGatewayName: 'out' } };
      assert.equal(projectPolicy(moved, before).spec?.gatewayName, 'out');
    }
    const leaving = { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }, spec };
    assert.equal(projectPolicy(leaving, before).isDeleting, true);
  });

  it('reads a spec that breaks a rule, and says which', () => {
    const view = projectPolicy(policyObject('red/p', { destSubnet: ['198.51.100.0/24', 'nonsense'] }));
    assert.deepEqual(formatSet(view.spec?.destinations ?? emptySet), ['198.51.100.0/24']);
    assert.match(
      view.problems[0]?.sentence ?? '',
      /EgressPolicy red\/p: destSubnet\[1\] is "nonsense": .*Correct the field/,
    );
  });

  it('never takes destinations that cannot be read for everything', () => {
    const { spec } = projectPolicy(policyObject('red/p', { destSubnet: ['nonsense'] }));
    assert.deepEqual(spec?.destinations?.intervals, []);
  });

  it('has no spec where the shape is wrong', () => {
    const view = projectPolicy({ metadata: { name: 'p', namespace: 'red' }, spec: { egressGatewayName: 7 } });
    assert.equal(view.spec, undefined);
    assert.match(view.problems[0]?.sentence ?? '', /EgressPolicy red\/p: egressGatewayName is 7/);
  });

  it('selects nothing where a selector cannot be read', () => {
    const view = projectPolicy(policyObject('red/p', { appliedTo: { podSelector: { matchLabels: { 'a b': 'c' } } } }));
    assert.equal(view.problems[0]?.reason, 'SelectorInvalid');
    assert.ok(view.spec?.appliedTo.kind === 'labels' && view.spec.appliedTo.pods.requirements.length === 2);
  });
});

describe('a selector that breaks a rule', () => {
  const noValues = { matchExpressions: [{ key: 'app', operator: 'NotIn' }] };
  const appliedTo: readonly object[] = [{}, { podSelector: {} }, { podSelector: noValues }];
  for (const applied of appliedTo) {
    it(`selects no pod: ${JSON.stringify(applied)}`, () => {
      const view = projectPolicy(policyObject('red/p', { appliedTo: applied }));
      assert.equal(view.problems[0]?.reason, 'SpecInvalid');
      assert.ok(view.spec?.appliedTo.kind === 'labels' && !matches(view.spec.appliedTo.pods, { app: 'x' }));
    });
  }

  for (const selector of [{}, noValues]) {
    it(`selects no node: ${JSON.stringify(selector)}`, () => {
      const view = projectGateway(gatewayObject('g', { selector }));
      assert.equal(view.problems[0]?.reason, 'SpecInvalid');
      assert.ok(view.spec !== undefined && !matches(view.spec.nodes, { app: 'x' }));
    });
  }
});

describe('projectGateway', () => {
  it('keeps the readable entries of a pool', () => {
    const view = projectGateway(gatewayObject('g', { ipv4: ['10.6.1.1', '010.0.0.1'] }));
    assert.deepEqual(formatSet(view.spec?.pools.ipv4 ?? emptySet), ['10.6.1.1']);
    assert.match(view.problems[0]?.sentence ?? '', /EgressGateway g: ippools.ipv4\[1\]: "010.0.0.1" has the part 010/);
  });

  it('drops a default EIP that is not in the pool', () => {
    const view = projectGateway(gatewayObject('g', { ipv4: ['10.6.1.1'], default4: '10.6.1.9' }));
    assert.equal(view.spec?.defaultEip.ipv4, undefined);
    assert.deepEqual(
      view.problems.map(({ reason }) => reason),
      ['DefaultEipOutsidePool'],
    );
    assert.match(view.problems[0]?.sentence ?? '', /EgressGateway g has the default EIP 10.6.1.9/);
  });
});

describe('projectNode', () => {
  it('takes addresses, not names, and pod ranges of both spellings', () => {
    const node = projectNode({
      metadata: { name: 'a' },
      spec: { podCIDR: '10.244.1.0/24' },
      status: {
        addresses: [
          { type: 'Hostname', address: '10.0.0.9' },
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'InternalIP', address: 'not-an-address' },
          { type: 'ExternalIP', address: '2001:DB8::1' },
        ],
        conditions: [{ type: 'Ready', status: 'Unknown' }],
      },
    });
    assert.deepEqual(node, {
      name: 'a',
      isReady: false,
      isDraining: false,
      labels: {},
      addresses: ['10.0.0.1', '2001:db8::1'],
      podCidrs: ['10.244.1.0/24'],
    });
  });
});

describe('projectPod', () => {
  it('sorts addresses by family, each once', () => {
    const pod = projectPod({
      metadata: { name: 'x', namespace: 'red' },
      status: { podIPs: [{ ip: 'fd44::7' }, { ip: '10.244.1.7' }, { ip: '10.244.1.7' }] },
    });
    assert.deepEqual([pod.ipv4, pod.ipv6], [['10.244.1.7'], ['fd44::7']]);
  });
});

describe('projectTunnel', () => {
  it('has the addresses that the agent reports for its parent interface, as far as they can be read', () => {
    const parent = { name: 'eth0', ipv4: '192.0.2.1', ipv6: 'nonsense' };
    const tunnel = projectTunnel({ metadata: { name: 'a' }, status: { tunnel: { parent } } }, 'fresh');
    assert.deepEqual(tunnel.parent, { ipv4: '192.0.2.1', ipv6: undefined });
    assert.deepEqual(tunnel.device, { kind: 'up' });
    const unreported = projectTunnel({ metadata: { name: 'a' } }, 'never');
    assert.deepEqual(unreported.parent, { ipv4: undefined, ipv6: undefined });
  });
});
