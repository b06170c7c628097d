import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import { recordPolicy } from '../../core/status/record.ts';
import { gatewayObject, nodeObject, policyObject } from '../../core/testing/objects.ts';
import { Decider } from './decision.ts';
import { MemoryCaches } from './testing/memory-caches.ts';

const config = Config.parse({});

/** A cluster with one gateway and one ready node, whose caches change only when a test says so. */
const rig = () => {
  const source = new MemoryCaches();
  source.putGateway('g', gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] }));
  /** A node whose agent reports these EIPs. */
  const putNode = (name: string, eips: readonly { ip: string; epoch: number }[] = []): void => {
    source.putNode(name, nodeObject(name, ['10.0.0.1']));
    source.putTunnel(name, { tunnel: { parent: { name: 'eth0' } }, report: { eips } });
  };
  putNode('a');
  const heartbeat: { state: 'fresh' | 'stale' } = { state: 'fresh' };
  const heartbeats = { stateOf: () => heartbeat.state, silent: new Set<string>() };
  return {
    heartbeat,
    putNode,
    decider: new Decider(source, heartbeats),
    another: () => new Decider(source, heartbeats),
    putPolicy(key: string, shape: { uid?: string } = {}, status?: PolicyStatus) {
      source.putPolicy(key, policyObject(key, { gateway: 'g', allocator: 'rr', ...shape }), status);
    },
  };
};

const eipOf = (decision: ReturnType<Decider['decide']>, key: string) =>
  decision.policyByKey.get(key)?.plan.binding?.eip?.ipv4;

describe('Decider', () => {
  it('keeps to what it decided while the caches do not show it yet', () => {
    const { decider, putPolicy } = rig();
    putPolicy('red/z');
    const before = eipOf(decider.decide(config), 'red/z');
    // As old as the other one, and first by name: without memory it would get the first free EIP.
    putPolicy('red/a');
    const after = decider.decide(config);
    assert.equal(eipOf(after, 'red/z'), before);
    assert.notEqual(eipOf(after, 'red/a'), before);
  });

  it('takes the statuses for its memory at the start', () => {
    const { decider, another, putPolicy } = rig();
    putPolicy('red/z');
    const decided = decider.decide(config).policyByKey.get('red/z');
    assert.ok(decided !== undefined);
    putPolicy('red/z', {}, recordPolicy(decided.plan));
    putPolicy('red/a');
    assert.equal(eipOf(another().decide(config), 'red/z'), decided.plan.binding?.eip?.ipv4);
  });

  it('does not let an edited status move anything', () => {
    const { decider, putPolicy } = rig();
    putPolicy('red/z');
    const before = eipOf(decider.decide(config), 'red/z');
    putPolicy('red/z', {}, { eip: { ipv4: '10.6.1.9' }, node: 'a', slot: 1 });
    assert.equal(eipOf(decider.decide(config), 'red/z'), before);
  });

  it('does not forget a take-over that the caches do not show yet, whatever the agent reports since', () => {
    const { decider, putPolicy, putNode } = rig();
    putPolicy('red/z', {}, { eip: { ipv4: '10.6.1.1' }, node: 'a', slot: 1, epoch: 2 });
    const placeOf = () => {
      const { node, epoch } = decider.decide(config).policyByKey.get('red/z')?.plan.binding ?? {};
      return [node, epoch];
    };
    assert.deepEqual(placeOf(), ['a', 2]);
    putNode('b', [{ ip: '10.6.1.1', epoch: 3 }]);
    assert.deepEqual(placeOf(), ['b', 3]);
    putNode('b');
    assert.deepEqual(placeOf(), ['b', 3]);
    putNode('b', [{ ip: '10.6.1.1', epoch: 5 }]);
    assert.deepEqual(placeOf(), ['b', 3], 'its own EIP, taken anew');
  });

  it('owes nothing to a policy that was made anew under the same name', () => {
    const { decider, putPolicy } = rig();
    putPolicy('red/z', { uid: 'first' });
    assert.notEqual(eipOf(decider.decide(config), 'red/z'), '10.6.1.5');
    putPolicy('red/z', { uid: 'second' }, { eip: { ipv4: '10.6.1.5' }, node: 'a', slot: 5 });
    assert.equal(eipOf(decider.decide(config), 'red/z'), '10.6.1.5');
  });

  it('says anew what it said about a policy of the same name that is gone', () => {
    const { decider, putPolicy } = rig();
    putPolicy('red/z', { uid: 'first' });
    decider.decide(config);
    assert.deepEqual([...decider.decide(config).changedPolicies], []);
    putPolicy('red/z', { uid: 'second' });
    const decision = decider.decide(config);
    assert.deepEqual([...decision.changedPolicies], ['red/z']);
    assert.equal(decision.policyByKey.get('red/z')?.uid, 'second');
  });

  it('counts a gateway as used as long as a policy has something from it', () => {
    const { decider, putPolicy, heartbeat } = rig();
    assert.deepEqual([...decider.decide(config).gatewaysInUse], []);
    putPolicy('red/z');
    assert.deepEqual([...decider.decide(config).gatewaysInUse], ['g']);
    heartbeat.state = 'stale';
    const decision = decider.decide(config);
    assert.equal(decision.tunnelByNode.get('a')?.phase, 'HeartbeatTimeout');
    assert.deepEqual([...decision.gatewaysInUse], ['g'], 'an EIP without a node is still taken');
  });

  it('gives the same values again for what did not change', () => {
    const { decider, putPolicy } = rig();
    putPolicy('red/z');
    const first = decider.decide(config).policyByKey.get('red/z');
    assert.ok(first !== undefined);
    // Neither the lag of the cache nor its catching up makes a difference.
    for (const status of [undefined, recordPolicy(first.plan)]) {
      putPolicy('red/z', {}, status);
      const before = decider.decide(config);
      const after = decider.decide(config);
      assert.equal(after.policyByKey.get('red/z'), before.policyByKey.get('red/z'));
      assert.equal(after.gatewayByName.get('g'), before.gatewayByName.get('g'));
    }
  });
});
