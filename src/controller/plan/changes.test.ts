import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finalizers } from '../../api/names.ts';
import { finding } from '../../core/cluster/finding.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { type ApiObject, projectGateway, projectPolicy, projectTunnel } from '../../core/project/index.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../core/testing/objects.ts';
import { type CachedObject, type Identity, identityOf } from '../loop/caches.ts';
import type { Change } from './change.ts';
import { canWaitLonger, eipsIn, gatewayChanges } from './gateway-changes.ts';
import { canWait, isForPeople, type PolicyFacts, policyChanges } from './policy-changes.ts';
import { tunnelChanges } from './tunnel-changes.ts';

const now = new Date('2026-01-01T00:00:00Z');

const kept = <View, Status>(
  project: (object: ApiObject) => View,
  object: ApiObject,
  identity: Partial<Identity> = {},
  status?: Status,
): CachedObject<View, Status> => ({
  // Objects of tests have the metadata that the API server would give them.
  identity: { ...identityOf(object as Parameters<typeof identityOf>[0]), ...identity },
  view: project(object),
  status,
});

const policy = policyObject('red/p', { gateway: 'g' });
const gateway = gatewayObject('g', { ipv4: ['10.6.1.1'] });

/** The plan of a gateway with one policy, on one node or on none. */
const planOf = (nodes: readonly string[], policies: readonly ApiObject[] = [policy]): Plan =>
  step(
    worldOf(
      nodes.map((name) => nodeObject(name, ['10.0.0.1'])),
      [gateway],
      policies,
    ),
  );

const facts: PolicyFacts = {
  matchedPods: 0,
  progress: { revision: undefined, nodes: [], unreadyGatewayNode: undefined, conflicts: [], isHeld: false },
};
const kindsOf = (changes: readonly Change<unknown>[]) => changes.map(({ kind }) => kind).join();

describe('policyChanges', () => {
  const decidedOf = (plan: Plan, generation = 1) => {
    const [first] = plan.policies;
    assert.ok(first !== undefined);
    return { plan: first, generation };
  };
  const statusOf = (plan: Plan) => {
    const [change] = policyChanges(decidedOf(plan), kept(projectPolicy, policy), facts, now);
    assert.ok(change?.kind === 'status');
    return change.status;
  };

  it('writes the binding and the conditions once', () => {
    const plan = planOf(['a']);
    const status = statusOf(plan);
    assert.deepEqual([status.eip, status.node, status.observedGeneration], [{ ipv4: '10.6.1.1' }, 'a', 1]);
    assert.deepEqual(policyChanges(decidedOf(plan), kept(projectPolicy, policy, {}, status), facts, now), []);
    for (const edit of [{ node: 'b' }, { matchedPods: 7 }]) {
      const edited = kept(projectPolicy, policy, {}, { ...status, ...edit });
      assert.equal(kindsOf(policyChanges(decidedOf(plan), edited, facts, now)), 'status');
    }
  });

  it('writes to a policy that is being deleted no more', () => {
    assert.deepEqual(
      policyChanges(decidedOf(planOf(['a'])), kept(projectPolicy, policy, { isDeleting: true }), facts, now),
      [],
    );
  });

  it('lets a count and the names of nodes wait, and nothing else', () => {
    const status = statusOf(planOf(['a']));
    const conditions = status.conditions ?? [];
    const reworded = conditions.map((condition) => ({ ...condition, message: 'Other nodes are waited for.' }));
    const changed = conditions.map((condition) => ({ ...condition, reason: 'KernelsInStep' }));
    assert.equal(canWait(status, { ...status, matchedPods: 7 }), true);
    assert.equal(canWait(status, { ...status, conditions: reworded }), true);
    assert.equal(canWait(status, { ...status, conditions: changed }), false);
    assert.equal(canWait(status, { ...status, node: 'b' }), false);
    assert.equal(canWait(status, { ...status, observedGeneration: 2 }), false);
    assert.equal(canWait(undefined, status), false);
    assert.equal(isForPeople(status, { ...status, conditions: changed }), true, 'packets are where they were');
    assert.equal(isForPeople(status, { ...status, node: 'b' }), false);
    assert.equal(isForPeople(undefined, status), false);
  });

  it('names the policy that wins over it', () => {
    const first = policyObject('red/first', {
      gateway: 'g',
      appliedTo: { podSelector: { matchLabels: { app: 'p' } } },
    });
    const plan = planOf(['a'], [policyObject('red/p', { gateway: 'g', at: 1 }), first]);
    const shadowed = plan.policies.find(({ key }) => key === 'red/p');
    assert.ok(shadowed !== undefined);
    const [change] = policyChanges({ plan: shadowed, generation: 1 }, kept(projectPolicy, policy), facts, now);
    assert.ok(change?.kind === 'status');
    const condition = change.status.conditions?.find(({ type }) => type === 'Shadowed');
    assert.match(condition?.message ?? '', /red\/first wins over red\/p for all of its traffic/);
  });
});

describe('gatewayChanges', () => {
  const [plan] = planOf(['a']).gateways;
  assert.ok(plan !== undefined);
  const changes = (identity: Partial<Identity>, isInUse: boolean) =>
    kindsOf(gatewayChanges({ plan, generation: 1 }, isInUse, kept(projectGateway, gateway, identity), now));
  const held = [finalizers.gateway];

  const cases: readonly [string, Partial<Identity>, boolean, string][] = [
    ['holds a new gateway before anything else', {}, false, 'hold,status'],
    ['does not hold it twice', { finalizers: held }, false, 'status'],
    ['keeps a deleted gateway that is in use', { finalizers: held, isDeleting: true }, true, 'status'],
    ['lets a deleted gateway go that is not', { finalizers: held, isDeleting: true }, false, 'release'],
    ['leaves it to others then', { finalizers: ['example.org/audit'], isDeleting: true }, false, ''],
    ['does not hold what is already going', { finalizers: [], isDeleting: true }, true, 'status'],
  ];
  for (const [name, identity, isInUse, expected] of cases) {
    it(name, () => assert.equal(changes(identity, isInUse), expected));
  }

  it('lets a status wait longer that only lists other EIPs, but not one that tells of another health', () => {
    const statusOf = (planned: Plan) => {
      const [gatewayPlan] = planned.gateways;
      assert.ok(gatewayPlan !== undefined);
      const [, change] = gatewayChanges({ plan: gatewayPlan, generation: 1 }, true, kept(projectGateway, gateway), now);
      assert.ok(change?.kind === 'status');
      return change.status;
    };
    const [none, one, twoNodes] = [planOf(['a'], []), planOf(['a']), planOf(['a', 'b'])].map(statusOf);
    assert.ok(none !== undefined && one !== undefined && twoNodes !== undefined);
    assert.deepEqual([eipsIn(none), eipsIn(one)], [0, 1]);
    assert.equal(canWaitLonger(none, one), true);
    assert.equal(canWaitLonger(one, twoNodes), false);
    assert.equal(canWaitLonger(undefined, one), false);
    const [node] = one.nodeList ?? [];
    const failed = { ...one, nodeList: [{ ...node, status: 'Failed' as const }] };
    assert.equal(canWaitLonger(one, failed), false);
  });
});

describe('tunnelChanges', () => {
  const [plan] = planOf(['a']).tunnels;
  assert.ok(plan !== undefined);
  const tunnel = (identity: Partial<Identity> = {}, mark?: string) =>
    kept(
      (object) => projectTunnel(object, 'never'),
      { metadata: { name: 'a' } },
      { finalizers: [finalizers.tunnel], ...identity },
      mark === undefined ? undefined : { mark },
    );

  const cases: readonly [string, string, Parameters<typeof tunnelChanges>][] = [
    ['makes a tunnel for a node without one', 'create', [plan, undefined, now]],
    ['gives a new tunnel its addresses', 'status', [plan, tunnel(), now]],
    ['holds a tunnel that somebody else has made', 'hold,status', [plan, tunnel({ finalizers: [] }), now]],
    ['removes a tunnel whose node is gone', 'delete', [undefined, tunnel(), now]],
    ['lets a deleted tunnel go', 'release', [plan, tunnel({ isDeleting: true }), now]],
    ['waits for others to let it go', '', [plan, tunnel({ isDeleting: true, finalizers: ['example.org/x'] }), now]],
    ['replaces a tunnel whose mark cannot stay', 'delete', [plan, tunnel({}, '0x26000100'), now]],
    ['has nothing to do without node and tunnel', '', [undefined, undefined, now]],
  ];
  for (const [name, expected, parameters] of cases) {
    it(name, () => assert.equal(kindsOf(tunnelChanges(...parameters)), expected));
  }

  it('leaves what the agent reports alone', () => {
    const [change] = tunnelChanges(plan, tunnel(), now);
    assert.ok(change?.kind === 'status');
    const reported = { ...change.status, tunnel: { ...change.status.tunnel, parent: { name: 'eth0' } }, report: {} };
    assert.deepEqual(tunnelChanges(plan, { ...tunnel(), status: reported }, now), []);
  });

  it('says in a condition what the agent reports of a lost uplink, and the tunnel stays Ready', () => {
    const problem = (why: string) => finding('UplinkLost', `Node a does not reach the outside in ${why}.`);
    const problems = [problem('IPv4: eth0 has no carrier'), problem('IPv6: eth0 has no carrier')].map(
      ({ reason, sentence }) => ({ reason, message: sentence }),
    );
    const object = { metadata: { name: 'a' }, status: { tunnel: { parent: { name: 'eth0' } }, report: { problems } } };
    const { uplink, device } = projectTunnel(object, 'never');
    assert.equal(device.kind, 'up');
    const [change] = tunnelChanges({ ...plan, uplink }, tunnel(), now);
    assert.ok(change?.kind === 'status');
    const condition = change.status.conditions?.find(({ type }) => type === 'UplinkLost');
    assert.equal(condition?.status, 'True');
    assert.match(condition?.message ?? '', /IPv4: eth0 has no carrier\. Node a .* IPv6: eth0 has no carrier\. Look at/);
    const status = { ...change.status, report: {} };
    const [after] = tunnelChanges(plan, { ...tunnel(), status }, now);
    assert.ok(after?.kind === 'status');
    assert.deepEqual(
      after.status.conditions?.map(({ type }) => type),
      ['Allocated', 'Ready'],
    );
  });
});
