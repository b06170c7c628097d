/** Laws of the plan of proxies, on objects of which many want the same or cannot be served. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ApiObject } from '../project/index.ts';
import { egressObject, proxiesView, proxyObject } from '../testing/proxies.ts';
import { isAtProxy } from './claims.ts';
import { planProxies } from './plan.ts';

// Most of the time goes into reading objects, so a few runs of many objects must do.
const laws = { numRuns: 20 };

const defaultProxy = 'bcs-system/egress-controller';
const names = ['a.example.com', 'b.example.com', 'A.Example.com', 'c.other.net'];
const tcpRule = fc.record(
  {
    sourceport: fc.constantFrom(3306, 5432, 6379, 61_010),
    destport: fc.constantFrom(3306, 61_000),
    ips: fc.constantFrom(
      '198.51.100.1',
      '198.51.100.2, 198.51.100.1',
      '127.0.0.1',
      '10.244.1.1',
      'not an address',
      ...names,
    ),
    algorithm: fc.constantFrom('roundrobin', 'least_conn', 'hash', 'chance'),
  },
  { requiredKeys: ['sourceport', 'destport', 'ips'] },
);
const httpRule = fc.record(
  {
    host: fc.constantFrom('*.example.com', '198.51.100.9', 'https://a', ...names),
    tls: fc.boolean(),
    transparent: fc.boolean(),
    destport: fc.constantFrom(80, 443, 8443),
  },
  { requiredKeys: ['host'] },
);
const proxyKeys = [defaultProxy, 'bcs-system/other', 'bcs-system/missing'];
const controllers = proxyKeys.map((key) => ({ namespace: 'bcs-system', name: key.split('/')[1] }));

/** Some BCSEgress objects, many of which want the same or cannot be served. */
const someEgresses: fc.Arbitrary<ApiObject[]> = fc
  .uniqueArray(fc.tuple(fc.constantFrom('n1', 'n2'), fc.constantFrom('a', 'b', 'c')), {
    maxLength: 6,
    selector: (key) => key.join('/'),
  })
  .chain((keys) =>
    fc.tuple(
      ...keys.map((key) =>
        fc
          .record({
            at: fc.integer({ min: 0, max: 2 }),
            isDeleting: fc.boolean(),
            controller: fc.constantFrom(...controllers),
            tcp: fc.array(tcpRule, { maxLength: 3 }),
            http: fc.array(httpRule, { maxLength: 3 }),
          })
          .map((shape) => egressObject(key.join('/'), shape)),
      ),
    ),
  );

/** The proxies that `someEgresses` name, but for one that is missing; the second one has tenants. */
const someProxies: readonly ApiObject[] = [
  proxyObject(proxyKeys[0]),
  proxyObject(proxyKeys[1], {
    tenants: [{ namespaces: ['n1'], domains: ['example.com'], ranges: ['198.51.100.0/24'], ports: [{ first: 3306 }] }],
  }),
];

test('law: the order of objects does not matter', () => {
  fc.assert(
    fc.property(
      someEgresses.chain((egresses) =>
        fc.tuple(fc.constant(egresses), fc.shuffledSubarray(egresses, { minLength: egresses.length })),
      ),
      ([egresses, shuffled]) => {
        const view = proxiesView({ egresses, proxies: someProxies });
        const other = proxiesView({ egresses: shuffled, proxies: someProxies.toReversed() });
        assert.deepEqual(planProxies(other), planProxies(view));
      },
    ),
    laws,
  );
});

test('law: a port of a proxy has one rule, a name one place, and a refused rule is not served', () => {
  fc.assert(
    fc.property(someEgresses, (egresses) => {
      const plan = planProxies(proxiesView({ egresses, proxies: someProxies }));
      for (const { rules, view } of plan.proxies.values()) {
        const ports = rules.rules.flatMap((rule) => (rule.kind === 'tcp' ? [rule.listenPort] : []));
        assert.equal(new Set(ports).size, ports.length);
        if (view === undefined) assert.deepEqual(rules.rules, []);
      }
      const served = new Set([...plan.proxies.values()].flatMap(({ rules }) => rules.rules.map(({ id }) => id)));
      const place = new Map<string, string>();
      for (const { view, rules } of plan.egresses.values()) {
        for (const { id, verdict, publish, kind } of rules) {
          assert.equal(verdict.ok && verdict.servedBy === id, served.has(id));
          if (publish === undefined) continue;
          const own = kind === 'http' || isAtProxy(publish, view) ? view.proxy : view.key;
          assert.equal(place.get(publish) ?? own, own);
          place.set(publish, own);
        }
      }
    }),
    laws,
  );
});

test('law: what an object is served depends on older objects only', () => {
  fc.assert(
    fc.property(someEgresses, (egresses) => {
      const whole = planProxies(proxiesView({ egresses, proxies: someProxies }));
      const byAge = [...whole.egresses.values()].toSorted(
        (a, b) => a.view.createdAtMs - b.view.createdAtMs || (a.view.key < b.view.key ? -1 : 1),
      );
      for (const [index, plan] of byAge.entries()) {
        const keys = new Set(byAge.slice(0, index + 1).map(({ view }) => view.key));
        const older = egresses.filter(({ metadata }) => keys.has(`${metadata.namespace}/${metadata.name}`));
        assert.deepEqual(
          planProxies(proxiesView({ egresses: older, proxies: someProxies })).egresses.get(plan.view.key),
          plan,
        );
      }
    }),
    laws,
  );
});

test('law: revisions are equal exactly when the rule sets are', () => {
  fc.assert(
    fc.property(someEgresses, someEgresses, (one, two) => {
      const sets = [one, two].map(
        (egresses) => planProxies(proxiesView({ egresses, proxies: someProxies })).proxies.get(defaultProxy)?.rules,
      );
      const [a, b] = sets.map((set) => JSON.stringify({ ...set, revision: undefined }));
      assert.equal(sets[0]?.revision === sets[1]?.revision, a === b);
    }),
    laws,
  );
});
