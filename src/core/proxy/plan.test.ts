import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ApiObject } from '../project/index.ts';
import { egressObject, planOf, proxiesView, proxyObject } from '../testing/proxies.ts';
import { letThrough } from './gate.ts';
import { type ProxiesPlan, planProxies } from './plan.ts';
import { projectEgress } from './project.ts';

const defaultProxy = 'bcs-system/egress-controller';
const db = { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' };

// Most of the time goes into reading objects, so a few runs of many objects must do.
const laws = { numRuns: 20 };

const ruleOf = (plan: ProxiesPlan, id: string) => {
  const [namespace, egress, rule] = id.split('/');
  const found = plan.egresses.get(`${namespace}/${egress}`)?.rules.find(({ name }) => name === rule);
  assert.ok(found, id);
  return found;
};
const reasonOf = (plan: ProxiesPlan, id: string): string => {
  const { verdict } = ruleOf(plan, id);
  return verdict.ok ? 'served' : verdict.finding.reason;
};
const sentenceOf = (plan: ProxiesPlan, id: string): string => {
  const { verdict } = ruleOf(plan, id);
  return verdict.ok ? '' : verdict.finding.sentence;
};

test('the example of the seed is served by the default proxy', () => {
  const plan = planOf({
    egresses: [
      egressObject('hn1/hn1-egress', {
        tcp: [{ sourceport: 8080, destport: 8080, ips: 'gamedb.proxy.tencent.com' }],
        http: [{ tls: true, host: 'wechatpay.api.com' }],
      }),
    ],
  });
  const proxy = plan.proxies.get(defaultProxy);
  assert.deepEqual(proxy?.references, ['hn1/hn1-egress']);
  assert.deepEqual(proxy?.rules.rules, [
    {
      kind: 'http',
      id: 'hn1/hn1-egress/https-wechatpay-api-com',
      host: { kind: 'exact', name: 'wechatpay.api.com' },
      isTls: true,
      destPort: 443,
    },
    {
      kind: 'tcp',
      id: 'hn1/hn1-egress/tcp-8080',
      listenPort: 8080,
      destPort: 8080,
      to: { kind: 'domain', name: 'gamedb.proxy.tencent.com' },
      algorithm: 'roundrobin',
      idleSeconds: 3600,
    },
  ]);
  const rule = ruleOf(plan, 'hn1/hn1-egress/tcp-8080');
  assert.equal(rule.publish, 'gamedb.proxy.tencent.com');
  assert.deepEqual(rule.service, { name: 'hn1-egress-tcp-8080', ports: [8080] });
});

test('the older object has the port, and the loser is told who', () => {
  const plan = planOf({
    egresses: [
      egressObject('a/young', {
        at: 5,
        tcp: [
          { ...db, ips: '198.51.100.1' },
          { name: 'other', sourceport: 1, destport: 1, ips: '198.51.100.1' },
        ],
      }),
      egressObject('b/old', { at: 1, tcp: [{ ...db, ips: '198.51.100.2' }] }),
    ],
  });
  assert.equal(reasonOf(plan, 'b/old/db'), 'served');
  assert.equal(reasonOf(plan, 'a/young/db'), 'SourcePortTaken');
  assert.match(sentenceOf(plan, 'a/young/db'), /Port 3306 .* belongs to rule db of BCSEgress b\/old, which is older/);
  assert.equal(reasonOf(plan, 'a/young/other'), 'served');
});

test('a port is free on another proxy, a name is not', () => {
  const other = { controller: { namespace: 'bcs-system', name: 'other' } };
  const plan = planOf({
    proxies: [proxyObject(), proxyObject('bcs-system/other')],
    egresses: [
      egressObject('a/a', { at: 1, tcp: [db] }),
      egressObject('b/b', { at: 2, ...other, tcp: [{ ...db, ips: '198.51.100.1' }] }),
      egressObject('c/c', { at: 3, ...other, tcp: [{ ...db, sourceport: 3307 }] }),
    ],
  });
  assert.equal(reasonOf(plan, 'b/b/db'), 'served');
  assert.equal(reasonOf(plan, 'c/c/db'), 'DomainTaken');
});

test('rules of one object share a name; one Service has the ports of all', () => {
  const plan = planOf({
    egresses: [egressObject('a/a', { tcp: [db, { ...db, name: 'admin', sourceport: 33060 }] })],
  });
  assert.deepEqual(ruleOf(plan, 'a/a/db').service?.ports, [3306, 33060]);
  assert.deepEqual(ruleOf(plan, 'a/a/admin').service?.ports, [33060]);
});

test('transparent hosts claim their name; the same host on the same proxy is shared', () => {
  const host = { host: 'api.example.com', tls: true, transparent: true };
  const plan = planOf({
    egresses: [
      egressObject('a/a', { at: 1, http: [host] }),
      egressObject('b/b', { at: 2, http: [host] }),
      egressObject('c/c', { at: 3, tcp: [{ ...db, ips: 'api.example.com' }] }),
    ],
  });
  const shared = ruleOf(plan, 'b/b/https-api-example-com');
  assert.deepEqual(shared.verdict, { ok: true, servedBy: 'a/a/https-api-example-com' });
  assert.equal(shared.publish, 'api.example.com');
  assert.equal(reasonOf(plan, 'c/c/db'), 'DomainTaken');
  assert.equal(plan.proxies.get(defaultProxy)?.rules.rules.length, 1);
});

test('reserved ports, addresses of the proxy itself and missing proxies are refused one by one', () => {
  const plan = planOf({
    egresses: [
      egressObject('a/a', {
        tcp: [
          { name: 'reserved', sourceport: 61000, destport: 1, ips: '198.51.100.1' },
          { name: 'loopback', sourceport: 1, destport: 61001, ips: '198.51.100.1,127.0.0.1' },
          { name: 'loop', sourceport: 2, destport: 61080, ips: '10.244.3.4' },
          { name: 'pod', sourceport: 3, destport: 80, ips: '10.244.3.4' },
        ],
        http: [{ name: 'zero', host: '0.0.0.0' }],
      }),
      egressObject('a/b', { controller: { namespace: 'x', name: 'y' }, tcp: [db] }),
    ],
  });
  const found = ['a/a/reserved', 'a/a/loopback', 'a/a/loop', 'a/a/pod', 'a/a/zero', 'a/b/db'].map((id) =>
    reasonOf(plan, id),
  );
  assert.deepEqual(found, [
    'PortReserved',
    'AddressForbidden',
    'ProxyLoop',
    'served',
    'AddressForbidden',
    'ProxyNotFound',
  ]);
});

test('tenants have what one entry allows as a whole', () => {
  const proxy = proxyObject(defaultProxy, {
    tenants: [
      { namespaces: ['shop'], domains: ['example.com'], ports: [{ first: 3000, last: 4000 }] },
      { selector: { matchLabels: { team: 'games' } }, ranges: ['198.51.100.0/24'] },
    ],
  });
  const plan = planOf({
    proxies: [proxy],
    labels: { play: { team: 'games' } },
    egresses: [
      egressObject('shop/a', {
        tcp: [
          db,
          { name: 'port', sourceport: 80, destport: 1, ips: 'x.example.com' },
          { name: 'ip', sourceport: 3001, destport: 1, ips: '198.51.100.1' },
        ],
        http: [
          { name: 'below', host: '*.example.com' },
          { name: 'beside', host: 'notexample.com' },
        ],
      }),
      egressObject('play/a', {
        tcp: [{ name: 'ip', sourceport: 1, destport: 1, ips: '198.51.100.1' }],
        http: [{ name: 'name', host: 'example.com' }],
      }),
      egressObject('else/a', { http: [{ name: 'any', host: 'example.com' }] }),
    ],
  });
  const found = [
    'shop/a/db',
    'shop/a/port',
    'shop/a/ip',
    'shop/a/below',
    'shop/a/beside',
    'play/a/ip',
    'play/a/name',
    'else/a/any',
  ].map((id) => [id, reasonOf(plan, id)]);
  assert.deepEqual(Object.fromEntries(found), {
    'shop/a/db': 'served',
    'shop/a/port': 'ClaimNotAllowed',
    'shop/a/ip': 'ClaimNotAllowed',
    'shop/a/below': 'served',
    'shop/a/beside': 'ClaimNotAllowed',
    'play/a/ip': 'served',
    'play/a/name': 'ClaimNotAllowed',
    'else/a/any': 'ClaimNotAllowed',
  });
  assert.match(sentenceOf(plan, 'shop/a/port'), /does not let rule port of namespace shop have port 80/);
});

test('two rules whose Services would have one name have two', () => {
  const plan = planOf({
    egresses: [
      egressObject('n/a', { at: 1, tcp: [{ ...db, name: 'b-c', ips: '198.51.100.1' }] }),
      egressObject('n/a-b', { at: 2, tcp: [{ ...db, name: 'c', sourceport: 1, ips: '198.51.100.1' }] }),
    ],
  });
  assert.equal(ruleOf(plan, 'n/a/b-c').service?.name, 'a-b-c');
  assert.match(ruleOf(plan, 'n/a-b/c').service?.name ?? '', /^a-b-c-[0-9a-f]{8}$/);
});

test('a proxy keeps what it served while the operator has not seen the change', () => {
  const first = projectEgress(egressObject('a/a', { generation: 1, tcp: [db] }));
  const second = projectEgress(egressObject('a/a', { generation: 2, seen: 1, tcp: [] }));
  const deleted = projectEgress(egressObject('a/a', { generation: 3, seen: 1, isDeleting: true }));
  const unseen = projectEgress(egressObject('a/b', { seen: 0 }));
  assert.deepEqual(letThrough([], [first, unseen]), [first]);
  assert.deepEqual(letThrough([first], [second]), [first]);
  assert.deepEqual(letThrough([first], [deleted]), [deleted]);
  assert.deepEqual(letThrough([first], []), []);
});

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
const proxyKeys = ['bcs-system/egress-controller', 'bcs-system/other', 'bcs-system/missing'];
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
          const own = kind === 'tcp' ? view.key : view.proxy;
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
