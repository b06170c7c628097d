import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionTypes, isReason, reasons } from './reasons.ts';
import { nodeReasons } from './reasons-node.ts';
import { policyReasons } from './reasons-policy.ts';
import { proxyReasons } from './reasons-proxy.ts';

// Kubernetes demands this of the reason of a condition (metav1.Condition).
const reasonPattern = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

test('names are CamelCase and fit the pattern of Kubernetes', () => {
  for (const name of [...Object.keys(reasons), ...Object.keys(conditionTypes)]) {
    assert.match(name, reasonPattern);
    assert.match(name, /^([A-Z][a-z0-9]+)+$/);
  }
});

test('no reason is in two lists', () => {
  const total = [policyReasons, nodeReasons, proxyReasons].reduce((sum, list) => sum + Object.keys(list).length, 0);
  assert.equal(Object.keys(reasons).length, total);
});

test('each has a sentence, something to do, and a place', () => {
  for (const [name, { places, sentence, remedy, status, fault }] of Object.entries(reasons)) {
    assert.match(sentence, /^[A-Za-z].*\.$/, name);
    assert.match(remedy, /^[A-Z].*\.$/, name);
    assert.ok(places.length > 0, name);
    assert.equal(fault === 'none', status === 'True' || (status === 'none' && places.includes('Event')), name);
  }
});

test('every condition type has a reason for True and, but for Shadowed, Slowed, Limited and UplinkLost, one for another status', () => {
  const list = Object.values(reasons);
  for (const type of Object.keys(conditionTypes)) {
    const own = list.filter(({ places }) => places.some((place) => place === type));
    assert.ok(
      own.some(({ status }) => status === 'True'),
      type,
    );
    assert.ok(
      ['Shadowed', 'Slowed', 'Limited', 'UplinkLost'].includes(type) || own.some(({ status }) => status !== 'True'),
      type,
    );
  }
});

test('isReason knows the list', () => {
  assert.ok(isReason('GatewayNotFound'));
  assert.ok(!isReason('toString'));
});
