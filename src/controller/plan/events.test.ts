import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyStatus } from '../../api/policy.ts';
import { nodeGroupKey } from '../../core/ownership/node-group.ts';
import { conditionsOf, type Findings } from '../../core/status/conditions.ts';
import { gatewayEvents, policyEvents, tunnelEvents } from './events.ts';

const conditions = (findings: Findings) => conditionsOf(findings, 1, undefined, new Date('2026-01-01T00:00:00Z'));
const allocated = conditions({ Allocated: { reason: 'EipAllocated', sentence: 'It has an EIP.' } });
const noNode = conditions({ Allocated: { reason: 'NoReadyNode', sentence: 'No node is ready.' } });
const inUse = conditions({ Programmed: { reason: 'EipInUse', sentence: '66:00:00:00:00:01 has it.' } });
const waiting = conditions({ Programmed: { reason: 'WaitingForNodes', sentence: 'Not yet.' } });
const status = (ipv4: string, node: string): PolicyStatus => ({ eip: { ipv4 }, node, conditions: allocated });
const told = (happenings: ReturnType<typeof policyEvents>) => happenings.map(({ type, reason }) => `${type} ${reason}`);

describe('policyHappenings', () => {
  const before = status('10.6.1.1', 'a');
  const inStep = { ...before, conditions: conditions({ Programmed: { reason: 'KernelsInStep', sentence: 'All.' } }) };
  const cases: readonly [string, PolicyStatus | undefined, PolicyStatus, readonly string[]][] = [
    ['nothing about a good start', undefined, before, []],
    ['nothing when nothing changed', before, before, []],
    ['a move to another node', before, status('10.6.1.1', 'b'), ['Normal EipMoved']],
    ['another EIP', before, status('10.6.1.2', 'b'), ['Normal PolicyRebound']],
    ['the node IP instead of an EIP', before, { ...before, eip: {} }, ['Normal PolicyRebound']],
    ['the loss of all nodes', before, { ...before, conditions: noNode }, ['Warning NoReadyNode']],
    ['a bad start', undefined, { conditions: noNode }, ['Warning NoReadyNode']],
    ['the same fault once only', { ...before, conditions: noNode }, { ...before, conditions: noNode }, []],
    ['that another machine has the EIP', before, { ...before, conditions: inUse }, ['Warning EipInUse']],
    ['that no other machine has the EIP any more', { ...before, conditions: inUse }, inStep, ['Normal KernelsInStep']],
    ['nothing when kernels are in step at last', { ...before, conditions: waiting }, inStep, []],
    ['nothing while kernels are waited for', before, { ...before, conditions: waiting }, []],
    ['the end of a fault', { ...before, conditions: noNode }, before, ['Normal EipAllocated']],
  ];
  for (const [name, from, to, expected] of cases) {
    it(`tells ${name}`, () => assert.deepEqual(told(policyEvents(from, to)), expected));
  }
});

describe('a take-over', () => {
  const held = (node: string, ip: string) => (node === 'b' && ip === '10.6.1.1' ? 5 : undefined);

  it('is told by name, of a policy', () => {
    const after = { ...status('10.6.1.1', 'b'), epoch: 5 };
    assert.deepEqual(policyEvents({ ...status('10.6.1.1', 'a'), epoch: 4 }, after, held), [
      { type: 'Warning', reason: 'EipTakenOver', note: 'Node b has taken over 10.6.1.1 from node a (epoch 5).' },
    ]);
  });

  it('is not what was planned: the new node does not hold the EIP in the epoch of the old one', () => {
    const planned = { ...status('10.6.1.1', 'b'), epoch: 4 };
    assert.deepEqual(told(policyEvents(status('10.6.1.1', 'a'), planned, held)), ['Normal EipMoved']);
    const known = { ...status('10.6.1.1', 'b'), epoch: 5 };
    assert.deepEqual(told(policyEvents({ ...known, node: 'a' }, known, held)), ['Normal EipMoved']);
  });

  it('is told of a policy with the node IP, whose node group another node serves', () => {
    const on = (node: string): PolicyStatus => ({ gateway: 'g', node, conditions: allocated });
    const key = nodeGroupKey({ gateway: 'g', node: 'a' });
    const serves = (node: string, ip: string) => (node === 'b' && ip === key ? 1 : undefined);
    assert.deepEqual(policyEvents(on('a'), on('b'), serves), [
      {
        type: 'Warning',
        reason: 'EipTakenOver',
        note: 'Node b serves the policy with its own address in place of node a.',
      },
    ]);
    assert.deepEqual(told(policyEvents(on('a'), on('c'), serves)), ['Normal EipMoved']);
  });

  it('is told in one sentence per node, of a gateway', () => {
    const on = (node: string, epoch: number) => ({
      nodeList: ['a', 'b'].map((name) => ({ name, eips: name === node ? [{ ipv4: '10.6.1.1', epoch }] : [] })),
    });
    assert.deepEqual(gatewayEvents(on('a', 4), on('b', 5), held), [
      { type: 'Warning', reason: 'EipTakenOver', note: 'Node b has taken over 10.6.1.1 from a.' },
    ]);
    assert.deepEqual(gatewayEvents(on('a', 4), on('b', 4), held), []);
  });
});

describe('gatewayHappenings', () => {
  it('tells in one sentence which EIPs are free again', () => {
    const list = (...eips: string[]) => ({ nodeList: [{ name: 'a', eips: eips.map((ipv4) => ({ ipv4 })) }] });
    const many = Array.from({ length: 9 }, (_, index) => `10.6.1.${index + 1}`);
    const [one] = gatewayEvents(list('10.6.1.1', '10.6.1.2'), list('10.6.1.2'));
    assert.deepEqual(one, { type: 'Normal', reason: 'EipReleased', note: 'An EIP is free again: 10.6.1.1.' });
    const [all] = gatewayEvents(list(...many), list());
    assert.match(all?.note ?? '', /^9 EIPs are free again: 10\.6\.1\.1, .* and 4 more\.$/);
    assert.deepEqual(gatewayEvents(list('10.6.1.1'), list('10.6.1.1')), []);
  });

  it('does not take an EIP that moves to another node for a free one', () => {
    const on = (name: string) => ({ nodeList: [{ name, eips: [{ ipv4: '10.6.1.1' }] }] });
    assert.deepEqual(gatewayEvents(on('a'), on('b')), []);
  });
});

describe('tunnelHappenings', () => {
  it('tells that a tunnel is no longer ready, and that it is again', () => {
    const ready = { conditions: conditions({ Ready: { reason: 'TunnelReady', sentence: 'It is up.' } }) };
    const silent = { conditions: conditions({ Ready: { reason: 'HeartbeatLost', sentence: 'It is silent.' } }) };
    assert.deepEqual(told(tunnelEvents(ready, silent)), ['Warning HeartbeatLost']);
    assert.deepEqual(told(tunnelEvents(silent, ready)), ['Normal TunnelReady']);
  });
});
