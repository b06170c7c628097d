import assert from 'node:assert/strict';
import { test } from 'node:test';
import { egressObject, planOf, proxyObject } from '../testing/proxies.ts';

const http = [{ host: 'api.example.com' }];
const tcp = [{ sourceport: 5432, destport: 5432, ips: '198.51.100.1' }];
const labels = { shop: {}, bakery: { team: 'food' }, garage: { team: 'cars' } };

/** Who may use the rules of the default proxy. */
const fromOf = (egresses: readonly ReturnType<typeof egressObject>[], proxy: object = {}) =>
  planOf({ proxies: [proxyObject(undefined, proxy)], egresses, labels })
    .proxies.get('bcs-system/egress-controller')
    ?.rules.rules.map(({ from }) => from);

test('rules are for pods of their own namespace', () => {
  assert.deepEqual(fromOf([egressObject('shop/a', { http, tcp })]), [['shop'], ['shop']]);
});

test('an object names whom else its rules are for, and its own namespace keeps them', () => {
  const sources = { namespaces: ['market'], selector: { matchLabels: { team: 'food' } } };
  assert.deepEqual(fromOf([egressObject('shop/a', { tcp, sources })]), [['bakery', 'market', 'shop']]);
});

test('rules are for anyone where the object says so, or its proxy and the object nothing else', () => {
  assert.deepEqual(fromOf([egressObject('shop/a', { tcp, sources: { any: true } })]), [undefined]);
  assert.deepEqual(fromOf([egressObject('shop/a', { tcp })], { sources: 'any' }), [undefined]);
  assert.deepEqual(fromOf([egressObject('shop/a', { tcp, sources: {} })], { sources: 'any' }), [['shop']]);
});

test('a host that two objects have is for the clients of both', () => {
  const two = [egressObject('shop/a', { http }), egressObject('bakery/b', { http })];
  assert.deepEqual(fromOf(two), [['bakery', 'shop']]);
});

test('who may use a rule is a part of its revision', () => {
  const revisions = [undefined, { any: true }, { namespaces: ['market'] }].map(
    (sources) =>
      planOf({
        egresses: [egressObject('shop/a', { tcp, ...(sources === undefined ? {} : { sources }) })],
        proxies: [proxyObject()],
      }).proxies.get('bcs-system/egress-controller')?.rules.revision,
  );
  assert.equal(new Set(revisions).size, 3);
});
