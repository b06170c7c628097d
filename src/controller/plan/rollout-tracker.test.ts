import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import { type PolicyKey, policyKey } from '../../core/cluster/view.ts';
import { projectPolicy, projectTunnel } from '../../core/project/index.ts';
import { anyRevision } from '../../core/status/programmed.ts';
import { policyObject } from '../../core/testing/objects.ts';
import { Store } from '../../runtime/kube/store.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { type CachedNode, type CachedPolicy, type CachedTunnel, cachedNode, identityOf } from '../loop/caches.ts';
import { RolloutTracker } from './rollout-tracker.ts';

const key = policyKey('red', 'p');
const bound: PolicyStatus = { eip: { ipv4: '10.6.1.1' }, node: 'gate', slot: 7 };
const eips = [{ ip: '10.6.1.1', epoch: 0 }];
const inStep = (generation: number): PolicyStatus => ({
  ...bound,
  conditions: [
    {
      type: 'Programmed',
      status: 'True',
      reason: 'KernelsInStep',
      message: '',
      observedGeneration: generation,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
});

/** A cache that a test fills. */
const cache = <T>() => {
  const store = new Store<T>({});
  let tell: (change: NonNullable<ReturnType<typeof store.put>>) => void = () => {};
  return {
    store,
    subscribe: (listener: typeof tell) => {
      tell = listener;
      return () => {};
    },
    set(name: string, value: T | undefined) {
      const change = value === undefined ? store.delete(name) : store.put(name, value);
      if (change !== undefined) tell(change);
    },
  };
};

/** A book about policy red/p, whose pods run on `workers`. */
const rig = (workers: readonly string[] = ['gate', 'worker']) => {
  const clock = new ManualClock();
  const [policies, clusterPolicies, tunnels] = [cache<CachedPolicy>(), cache<CachedPolicy>(), cache<CachedTunnel>()];
  const nodes = cache<CachedNode>();
  const silent = new Set<string>();
  const book = new RolloutTracker({
    caches: { policies, clusterPolicies, tunnels, nodes },
    members: { nodes: () => workers },
    heartbeats: { stateOf: (node) => (silent.has(node) ? 'stale' : 'never') },
    clock,
  });
  const told: PolicyKey[][] = [];
  book.subscribe((keys) => told.push([...keys]));
  const view = projectPolicy(policyObject('red/p'));
  const ready = (node: string, isReady: boolean): void => {
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
    nodes.set(node, cachedNode({ metadata: { name: node }, status: { conditions } }));
  };
  for (const node of new Set(['gate', ...workers])) ready(node, true);
  return {
    silent,
    ready,
    put(resourceVersion: string, generation: number, status: PolicyStatus, uid = 'uid-p') {
      const metadata = { namespace: 'red', name: 'p', uid, resourceVersion, generation };
      policies.set(key, { identity: identityOf({ metadata }), view: { ...view, uid }, status });
    },
    remove: () => policies.set(key, undefined),
    report(node: string, status: EgressTunnelStatus) {
      const object = { metadata: { name: node }, status };
      tunnels.set(node, { identity: identityOf(object), view: projectTunnel(object, 'never'), status });
    },
    progress: (generation = 1, binding = bound) => book.of(view, generation, binding),
    /** The policies told about in the next while, without empty answers. */
    async told(ms: number) {
      told.length = 0;
      await clock.advance(ms);
      return told.filter((keys) => keys.length > 0);
    },
  };
};

describe('ProgressBook', () => {
  it('asks for the revision of the last change that agents act on', () => {
    const { put, progress } = rig();
    put('10', 1, {});
    assert.equal(progress().revision, undefined, 'what was decided is not written yet');
    put('11', 1, bound);
    assert.equal(progress().revision, '11');
    put('12', 1, { ...bound, matchedPods: 3, conditions: [] });
    assert.equal(progress().revision, '11', 'a count and conditions ask nothing of agents');
    put('13', 2, bound);
    assert.equal(progress().revision, undefined, 'the spec has changed, and the decision is older');
    assert.equal(progress(2).revision, '13');
    put('14', 2, { ...bound, node: 'other' });
    assert.equal(progress(2, { ...bound, node: 'other' }).revision, '14');
  });

  it('does not ask again for what an earlier controller has seen in all kernels', () => {
    const restarted = rig();
    restarted.put('20', 1, inStep(1));
    assert.equal(restarted.progress().revision, anyRevision);
    restarted.put('21', 1, inStep(1));
    assert.equal(restarted.progress().revision, anyRevision);
    const edited = rig();
    edited.put('20', 2, inStep(1));
    assert.equal(edited.progress(2).revision, '20', 'that was another generation');
  });

  it('starts anew with a policy that was made anew', () => {
    const { put, remove, progress } = rig();
    put('10', 1, inStep(1));
    remove();
    assert.equal(progress().revision, undefined);
    put('11', 1, bound, 'uid-2');
    assert.equal(progress().revision, '11');
    put('12', 1, inStep(1), 'uid-3');
    assert.equal(progress().revision, '12', 'the event of the deletion may be missed');
  });

  it('names the gateway node first, and every node once', () => {
    const nodes = rig(['a', 'gate', 'z']).progress().nodes;
    assert.deepEqual(
      nodes.map(({ node }) => node),
      ['gate', 'a', 'z'],
    );
  });

  it('hears of an agent by its report, and no more when it has fallen silent', () => {
    const { report, silent, progress } = rig(['gate']);
    assert.equal(progress().nodes[0]?.isHeard, false);
    report('gate', { report: { appliedRevision: '7' } });
    assert.deepEqual(progress().nodes, [
      { node: 'gate', isHeard: true, applied: '7', problems: [], hasMoreProblems: false },
    ]);
    silent.add('gate');
    assert.equal(progress().nodes[0]?.isHeard, false);
  });

  it('holds an EIP back until its gateway node reports it, by either address, and tells of it then', async () => {
    const { put, report, progress, told } = rig(['gate']);
    const pair = { ...bound, eip: { ipv4: '10.6.1.1', ipv6: 'fd06::1' } };
    put('10', 1, pair);
    report('gate', { report: { appliedRevision: '10', eips: [{ ip: '10.6.1.2', epoch: 1 }] } });
    report('other', { report: { appliedRevision: '10', eips: [{ ip: '10.6.1.1', epoch: 1 }] } });
    assert.equal(progress(1, pair).isHeld, false);
    assert.deepEqual(await told(100), []);
    report('gate', { report: { appliedRevision: '10', eips: [{ ip: 'fd06::1', epoch: 1 }] } });
    assert.equal(progress(1, pair).isHeld, true);
    assert.deepEqual(await told(100), [[key]]);
    assert.equal(progress(1, { node: 'gate', slot: 7 }).isHeld, true, 'a policy that leaves with node addresses');
  });

  it('tells of a policy when its last node is there, and not with every node', async () => {
    const { put, report, told } = rig();
    put('10', 1, bound);
    report('gate', { report: { appliedRevision: '10', eips } });
    assert.deepEqual(await told(100), []);
    report('worker', { report: { appliedRevision: '10' } });
    assert.deepEqual(await told(100), [[key]]);
    put('11', 1, inStep(1));
    report('gate', { report: { appliedRevision: '11', eips } });
    report('worker', { report: { appliedRevision: '11' } });
    assert.deepEqual(await told(10_000), [], 'our own write has come back, and nobody writes again');
  });

  it('tells now and then of policies that still wait, because the names of the nodes change', async () => {
    const { put, report, told } = rig();
    put('10', 1, bound);
    report('gate', { report: { appliedRevision: '10' } });
    assert.deepEqual(await told(10_000), [[key]]);
    assert.deepEqual(await told(10_000), []);
  });

  it('tells of the policies of a node that has other problems than before', async () => {
    const { put, report, told } = rig();
    put('10', 1, inStep(1));
    const problem = { reason: 'NftRefused', message: 'No.' };
    report('worker', { report: { problems: [problem] } });
    assert.deepEqual(await told(100), [[key]]);
    report('elsewhere', { report: { problems: [problem] } });
    assert.deepEqual(await told(10_000), []);
    report('worker', { report: { problems: [] } });
    assert.deepEqual(await told(100), [[key]]);
  });

  it('tells of the policies of a node whose report has no room for more problems, and again when it has', async () => {
    const { put, report, progress, told } = rig(['gate']);
    put('10', 1, inStep(1));
    report('gate', { report: { appliedRevision: '10', eips } });
    await told(10_000);
    report('gate', { report: { appliedRevision: '10', eips, unlistedProblems: 1 } });
    assert.equal(progress().nodes[0]?.hasMoreProblems, true);
    assert.deepEqual(await told(100), [[key]]);
    report('gate', { report: { appliedRevision: '10', eips, unlistedProblems: 2 } });
    assert.deepEqual(await told(10_000), [], 'that there is one more says nothing about any policy');
    report('gate', { report: { appliedRevision: '10', eips } });
    assert.deepEqual(await told(100), [[key]]);
  });

  it('does not count on a gateway node that is not ready, though its agent is not silent for long enough', async () => {
    const { put, report, ready, progress, told } = rig();
    put('10', 1, inStep(1));
    for (const node of ['gate', 'worker']) report(node, { report: { appliedRevision: '10', eips } });
    await told(10_000);
    assert.equal(progress().unreadyGatewayNode, undefined);
    ready('gate', false);
    assert.equal(progress().unreadyGatewayNode, 'gate');
    assert.deepEqual(await told(100), [[key]]);
    ready('gate', true);
    assert.equal(progress().unreadyGatewayNode, undefined);
    assert.deepEqual(await told(100), [[key]]);
  });
});
