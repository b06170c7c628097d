import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import { projectGateway, projectPolicy, projectTunnel } from '../../core/project/index.ts';
import { gatewayObject, policyObject } from '../../core/testing/objects.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { type CachedObject, type Identity, identityOf } from '../loop/caches.ts';
import type { IndexedPlan, PlanInput } from './decision.ts';
import { Planner, type PlannerDeps } from './planner.ts';

/** Not read by the planner, which only hands it on. */
const noDecision = {} as IndexedPlan;
const config = Config.parse({});
const hooks = { reconciled: () => {}, retried: () => {} };

/** A running planner on a clock that stands still, with changes that a test makes and decisions that are counted. */
const rig = async () => {
  const clock = new ManualClock();
  const tell = new Map<PlanInput | 'config', (change: never) => void>();
  const cache = (name: PlanInput) => ({
    subscribe: (listener: (change: never) => void) => {
      tell.set(name, listener);
      return () => {};
    },
  });
  const caches: PlannerDeps['caches'] = {
    nodes: cache('nodes'),
    namespaces: cache('namespaces'),
    gateways: cache('gateways'),
    policies: cache('policies'),
    clusterPolicies: cache('clusterPolicies'),
    tunnels: cache('tunnels'),
    clusterInfos: cache('clusterInfos'),
  };
  const silence = { isNew: false };
  const planner = new Planner(
    {
      caches,
      clock,
      config: {
        current: config,
        changed: (listener) => {
          tell.set('config', listener);
          return () => {};
        },
      },
      metrics: { controller: () => hooks },
    },
    { look: () => silence.isNew },
  );
  let decisions = 0;
  const stop = new AbortController();
  const decider = {
    decide: () => {
      decisions += 1;
      return noDecision;
    },
  };
  const ended = planner.run(decider, stop.signal);
  await clock.advance(1_000);
  return {
    clock,
    silence,
    planner,
    /** Tells that some node has changed. */
    change: () => tell.get('nodes')?.(undefined as never),
    /** Tells a change and returns how many decisions it led to. */
    async decisionsAfter<T>(name: PlanInput | 'config', change: StoreChange<T>): Promise<number> {
      const before = decisions;
      // The cache of that name holds values of that type; the map of listeners cannot say so.
      tell.get(name)?.(change as never);
      await clock.advance(1_000);
      return decisions - before;
    },
    decisions: () => decisions,
    async end() {
      stop.abort();
      await ended;
    },
  };
};

const kept = <View>(object: object, view: View, identity: Partial<Identity> = {}): CachedObject<View, object> => ({
  // Test objects have the metadata that the API server gives.
  identity: { ...identityOf(object as KubeObject), ...identity },
  view,
  status: {},
});

describe('Planner', () => {
  it('decides once at the start, even in an empty cluster', async () => {
    const { decisions, end } = await rig();
    assert.equal(decisions(), 1);
    await end();
  });

  it('decides when a spec changes, an object is made anew, or goes, and not when a status does', async () => {
    const { decisionsAfter, end } = await rig();
    const policy = policyObject('red/p');
    const first = kept(policy, projectPolicy(policy), { generation: 1, uid: '1' });
    const change = (identity: Partial<Identity>) => ({
      kind: 'put' as const,
      key: 'red/p',
      previous: first,
      value: { ...first, identity: { ...first.identity, ...identity } },
    });
    assert.equal(await decisionsAfter('policies', { ...change({}), previous: undefined }), 1, 'it is new');
    assert.equal(await decisionsAfter('policies', change({ resourceVersion: '9' })), 0, 'a status was written');
    assert.equal(await decisionsAfter('policies', change({ generation: 2 })), 1, 'the spec has changed');
    assert.equal(await decisionsAfter('policies', change({ uid: '2' })), 1, 'it was made anew');
    assert.equal(await decisionsAfter('policies', change({ isDeleting: true })), 1, 'it is being deleted');
    assert.equal(await decisionsAfter('policies', { kind: 'delete', key: 'red/p', previous: first }), 1, 'it is gone');
    const gateway = kept(gatewayObject('g'), projectGateway(gatewayObject('g')));
    assert.equal(await decisionsAfter('gateways', { kind: 'put', key: 'g', value: gateway, previous: gateway }), 0);
    const annotations = { 'egressgateway.spidernet.io/move-eips': '10.6.1.1=a' };
    const wish = { ...gatewayObject('g'), metadata: { ...gatewayObject('g').metadata, annotations } };
    const wished = kept(wish, projectGateway(wish));
    const moved = { kind: 'put', key: 'g', value: wished, previous: gateway } as const;
    assert.equal(await decisionsAfter('gateways', moved), 1, 'somebody wants an EIP elsewhere');
    await end();
  });

  it('decides on what an agent reports, and not on its heartbeats', async () => {
    const { decisionsAfter, end } = await rig();
    const tunnel = (status: object) => {
      const object = { metadata: { name: 'a' }, status };
      return kept(object, projectTunnel(object, 'never'));
    };
    const change = (before: object, after: object) => ({
      kind: 'put' as const,
      key: 'a',
      previous: tunnel(before),
      value: tunnel(after),
    });
    const beat = { lastHeartbeatTime: '2026-01-01T00:00:00Z' };
    const up = { tunnel: { parent: { name: 'eth0' } } };
    assert.equal(await decisionsAfter('tunnels', change({}, beat)), 0);
    assert.equal(await decisionsAfter('tunnels', change({}, up)), 1);
    const held = { ...up, report: { eips: [{ ip: '10.6.1.1', epoch: 2 }] } };
    assert.equal(await decisionsAfter('tunnels', change(up, held)), 1);
    const problems = [
      { reason: 'UplinkLost', message: 'Node a does not reach the outside in IPv6: eth0 has no carrier.' },
    ];
    const lost = { ...held, report: { ...held.report, problems } };
    assert.equal(await decisionsAfter('tunnels', change(held, lost)), 1);
    assert.equal(await decisionsAfter('tunnels', change(lost, held)), 1, 'and when it is back');
    await end();
  });

  it('decides when an agent falls silent, and when the configuration changes', async () => {
    const { clock, silence, decisions, decisionsAfter, end } = await rig();
    silence.isNew = true;
    await clock.advance(6_000);
    silence.isNew = false;
    assert.equal(decisions(), 2);
    await clock.advance(60_000);
    assert.equal(decisions(), 2);
    assert.equal(await decisionsAfter('config', { kind: 'delete', key: '', previous: config }), 1);
    await end();
  });

  it('lets a watch look when decisions have paused, and at the limit when they do not', async () => {
    const { clock, planner, change, decisions, end } = await rig();
    const looksAtMs: number[] = [];
    const watched = planner.watch('late', () => ['key'], 100, 500);
    const unsubscribe = watched.subscribe(() => looksAtMs.push(clock.monotonicMs()));
    const [startMs, before] = [clock.monotonicMs(), decisions()];
    for (let round = 0; round < 12; round += 1) {
      change();
      await clock.advance(50);
    }
    assert.equal(decisions() - before, 12);
    await clock.advance(1_000);
    // The last decision is that of 550 ms.
    assert.deepEqual(
      looksAtMs.map((atMs) => atMs - startMs),
      [500, 650],
    );
    unsubscribe();
    await end();
  });
});
