import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../ip/index.ts';
import { ip } from '../testing/address.ts';
import { nodeSettings, podOn } from '../testing/nodes.ts';
import { desiredOf, smallCluster, smallPods } from '../testing/small-cluster.ts';
import { type Before, cutsAfter, type ExistingRules } from './existing.ts';
import type { NodeInput } from './input.ts';
import { replyMark, slotMark } from './numbers.ts';

const pod = ip('10.244.1.7');
const outside = ip('203.0.113.9');
const namespaces = [{ name: 'red', labels: {} }];
const rulesOf = (policies: Parameters<typeof smallCluster>[0], over: Partial<NodeInput> = {}): ExistingRules =>
  desiredOf(smallCluster(policies), 'w', { namespaces, ...over }).existing;

const booted: Before = { rules: undefined, known: undefined };
const restarted: Before = {
  rules: undefined,
  known: new Set(smallPods.flatMap(({ ipv4, ipv6 }) => [...ipv4, ...ipv6])),
};
const after = (rules: ExistingRules): Before => ({ rules, known: rules.known });
const cut = (before: Before, rules: ExistingRules, destination: Ip = outside, mark = 0, source: Ip = pod): boolean =>
  cutsAfter(before, rules)?.(source)?.(destination, mark) ?? false;

describe('after a boot', () => {
  const policies = {
    'red/p': { exceptSubnet: ['198.51.100.0/24'] },
    everybody: { appliedTo: { podSubnet: ['10.244.1.128/25'] } },
  };
  const rules = rulesOf(policies);

  it('a connection that a policy is about goes, in both families, whoever marked it', () => {
    assert.equal(cut(booted, rules), true);
    assert.equal(cut(booted, rules, ip('2606::1'), 0, ip('fd44::7')), true);
    assert.equal(cut(booted, rules, outside, 0x0f00), true, 'a mark of another program');
  });

  it('a connection that is rightly outside the policy stays', () => {
    for (const inside of ['198.51.100.7', '10.244.2.7', '192.0.2.2', '169.254.169.254', '127.0.0.1', '224.0.0.5']) {
      assert.equal(cut(booted, rules, ip(inside)), false, inside);
    }
    assert.equal(cut(booted, rules, outside, 0, ip('10.244.1.9')), false, 'a pod under no policy');
    assert.equal(cut(booted, rules, outside, 0, ip('192.0.2.3')), false, 'the node itself');
  });

  it('a connection that is under a policy already stays', () => {
    assert.equal(cut(booted, rules, outside, slotMark(7)), false);
    assert.equal(cut(booted, rules, outside, replyMark(0x1234)), false, 'carried on from another node');
  });

  it('a source that is under a policy by its address alone is cut too', () => {
    assert.equal(cut(booted, rules, outside, 0, ip('10.244.1.200')), true);
    assert.equal(cut(restarted, rules, outside, 0, ip('10.244.1.200')), false, 'its rule was there all the time');
  });

  it('nothing goes where the policy leaves alone what nothing serves, or the family is turned off', () => {
    assert.equal(cut(booted, rulesOf({ 'red/p': { gateway: 'none', onUnavailable: 'NodeIP' } })), false);
    assert.equal(cut(booted, rulesOf({ 'red/p': { gateway: 'none' } })), true, 'dropped, so it must not go on');
    const only4 = rulesOf(policies, { settings: { ...nodeSettings, hasIpv6: false } });
    assert.equal(cut(booted, only4, ip('2606::1'), 0, ip('fd44::7')), false);
  });
});

describe('a pod that the kernel has not known', () => {
  const late = podOn('w', 'red/late', ['10.244.1.20'], { app: 'shop' });

  it('a pod that was quicker than the agent loses what it opened without the policy, and others lose nothing', () => {
    const [first, second] = [rulesOf({ 'red/p': {} }), rulesOf({ 'red/p': {} }, { pods: [...smallPods, late] })];
    assert.equal(cut(after(first), second, outside, 0, ip('10.244.1.20')), true);
    assert.equal(cut(after(first), second), false);
    assert.equal(cutsAfter(after(second), second), undefined, 'once');
    assert.equal(cutsAfter(after(second), { ...second }), undefined, 'and nobody looks when no pod is new');
  });

  it('a pod whose namespace is known later is new until then', () => {
    const policies = { 'red/p': {} };
    const unheard = rulesOf(policies, { namespaces: [] });
    assert.equal(cut(after(unheard), rulesOf(policies)), true);
  });
});

describe('a policy that is new to a pod', () => {
  const none = rulesOf({});
  const keep = rulesOf({ 'red/p': {} });
  const policies = { 'red/p': { onExistingConnections: 'Cut' } };
  const cuts = rulesOf(policies);

  it('lets connections go on unless it says Cut', () => {
    assert.equal(cutsAfter(after(none), keep), undefined);
    assert.equal(cut(after(none), cuts), true);
    assert.equal(cut(after(keep), cuts), true, 'also when only that is new');
    assert.equal(cut(restarted, cuts), true, 'also when it came while no agent was there');
    assert.equal(cut(after(none), cuts, outside, 0, ip('10.244.1.9')), false, 'another pod');
  });

  it('is not looked for again while nothing is other', () => {
    assert.equal(cutsAfter(after(cuts), cuts), undefined);
  });

  it('cuts what began under another policy too, and never what is its own', () => {
    const own = [...desiredOf(smallCluster(policies), 'w').table.elements.slot_fwd.keys()].map(Number);
    assert.equal(own.length, 1);
    for (const mark of own) {
      assert.equal(cut(after(none), cuts, outside, mark), false);
      assert.equal(cut(after(none), cuts, outside, mark + 1), true);
      assert.equal(cut(after(none), keep, outside, mark + 1), false);
    }
    const unserved = rulesOf({ 'red/p': { gateway: 'none', onExistingConnections: 'Cut' } });
    for (const mark of own) assert.equal(cut(after(cuts), unserved, outside, mark), false, 'nobody serves it for now');
    assert.equal(cut(after(none), unserved), true);
  });

  it('asks the policy that decides about the destination', () => {
    const rules = rulesOf({
      'red/some': { destSubnet: ['203.0.113.0/24'], priority: 1 },
      'red/rest': { onExistingConnections: 'Cut', priority: 2 },
    });
    assert.equal(cut(after(none), rules), false);
    assert.equal(cut(after(none), rules, ip('8.8.8.8')), true);
  });
});
