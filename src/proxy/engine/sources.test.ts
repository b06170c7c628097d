import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { SourceIndex, sourceOf, sourcesOf } from './sources.ts';

const pod = (namespace: string, address: string, more: object = {}) =>
  sourceOf({ metadata: { name: 'p', namespace }, spec: {}, status: { podIPs: [{ ip: address }] }, ...more });
const shop = pod('shop', '10.244.1.1');
const mayUse = (pods: Parameters<typeof sourcesOf>[0], from: readonly string[] | undefined, address = '10.244.1.1') =>
  new SourceIndex(sourcesOf(pods)).mayUse(ip(address), from);

test('a pod is a client of its own namespace, by each of its addresses', () => {
  const both = pod('shop', '', { status: { podIPs: [{ ip: '10.244.1.1' }, { ip: 'fd00::1' }] } });
  for (const address of ['10.244.1.1', 'fd00::1']) {
    assert.ok(mayUse([both], ['other', 'shop'], address));
    assert.ok(!mayUse([both], ['other'], address));
  }
});

test('an address that nobody has, or two namespaces have, is nobody', () => {
  assert.ok(!mayUse([], ['shop']));
  assert.ok(!mayUse([shop, pod('other', '10.244.1.1')], ['shop']));
  assert.ok(!mayUse([shop, pod('other', '10.244.1.1'), shop], ['shop', 'other']));
  assert.ok(mayUse([shop, shop], ['shop']));
});

test('a pod in the network of its node, and one that has ended, is nobody', () => {
  assert.ok(!mayUse([pod('shop', '10.244.1.1', { spec: { hostNetwork: true } })], ['shop']));
  const ended = { status: { phase: 'Succeeded', podIPs: [{ ip: '10.244.1.1' }] } };
  assert.ok(mayUse([shop, pod('other', '10.244.1.1', ended)], ['shop']), 'its address belongs to the next one');
});

test('a proxy is no client of any rule, also not of one for anyone', () => {
  const labels = { 'app.kubernetes.io/name': 'sallyport-proxy' };
  const proxy = pod('bcs-system', '10.244.1.1', { metadata: { name: 'p', namespace: 'bcs-system', labels } });
  for (const from of [undefined, ['bcs-system']]) assert.ok(!mayUse([proxy, shop], from));
  assert.ok(mayUse([proxy], undefined, '10.244.1.2'));
});
