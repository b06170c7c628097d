import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ServedRule } from '../../core/proxy/served.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { bootstrapOf } from './bootstrap.ts';
import { type EnvoyResources, render } from './render.ts';

const places = {
  routesPath: '/run/routes.json',
  accessLogPath: '/run/access.log',
  hasIpv6: true,
  pathOf: (name: string) => `/run/sources-${name}.json`,
};
const golden = (name: string): string => join(import.meta.dirname, 'golden', name);
const plain = { serializers: [(text: string): string => text] };
const rendered = (...rules: readonly ServedRule[]): EnvoyResources => render(ruleSet(...rules), places);

const someRules: readonly ServedRule[] = [
  tcpRule(3306, ['203.0.113.1', '2001:db8::1'], 3306, { algorithm: 'hash' }),
  tcpRule(5432, 'db.example.com', 15432, { algorithm: 'least_conn', idleSeconds: 60 }),
  httpRule('api.example.com'),
  httpRule('*.example.com', { isTls: true }),
  httpRule('2001:db8::2', { destPort: 8080 }),
];

describe('what Envoy is told', () => {
  it('is this, for one rule of each kind', (t) => {
    const { clusters, listeners, routes } = rendered(...someRules);
    const text = { clusters: [...clusters.values()], listeners: [...listeners.values()], routes };
    t.assert.fileSnapshot(`${JSON.stringify(text, null, 1)}\n`, golden('rules.txt'), plain);
  });

  it('starts with this', (t) => {
    const files = {
      bootstrap: 'b',
      clusters: '/run/c',
      listeners: '/run/l',
      routes: '/run/r',
      judge: '/run/judge.sock',
      accessLog: '/run/x',
      admin: '/run/a',
    };
    t.assert.fileSnapshot(`${JSON.stringify(bootstrapOf(files), null, 1)}\n`, golden('bootstrap.txt'), plain);
  });

  it('is the same for the same rules, and another rule changes nothing of the rest', () => {
    const before = rendered(...someRules);
    const after = rendered(...someRules, tcpRule(9000, ['203.0.113.9'], 1), httpRule('more.test'));
    for (const [id, cluster] of before.clusters) assert.deepEqual(after.clusters.get(id), cluster);
    for (const [name, listener] of before.listeners) assert.deepEqual(after.listeners.get(name), listener);
    assert.deepEqual([...rendered(...someRules).clusters], [...before.clusters]);
  });

  it('listens on IPv4 alone where there is no IPv6', () => {
    const { listeners } = render(ruleSet(...someRules), { ...places, hasIpv6: false });
    for (const listener of listeners.values()) {
      assert.match(JSON.stringify(listener.address), /"address":"0\.0\.0\.0"/);
    }
  });
});

interface VirtualHost {
  readonly domains: readonly string[];
  readonly routes: readonly { readonly route?: { readonly cluster: string }; readonly match: object }[];
}

/** The allow-list as text: domain -> rules for tunnels and for plain requests. */
const allowed = (...rules: readonly ServedRule[]): Record<string, string[]> => {
  // The routes are our own, just made.
  const hosts = rendered(...rules).routes.virtual_hosts as unknown as readonly VirtualHost[];
  return Object.fromEntries(
    hosts.flatMap(({ domains, routes }) =>
      domains.map((domain) => [domain, routes.flatMap(({ route }) => (route === undefined ? [] : [route.cluster]))]),
    ),
  );
};

describe('the allow-list', () => {
  it('has a host with its port, and without it for port 80', () => {
    const plain80 = httpRule('a.test');
    const tls = httpRule('a.test', { isTls: true });
    const address = httpRule('2001:db8::2');
    assert.deepEqual(allowed(plain80, tls, address), {
      'a.test': [plain80.id],
      'a.test:80': [plain80.id],
      'a.test:443': [tls.id],
      '[2001:db8::2]': [address.id],
      '[2001:db8::2]:80': [address.id],
      '*': [],
    });
  });

  it('gives a name what wider rules allow, because only its own entry is looked at', () => {
    const wide = httpRule('*.test', { isTls: true });
    const narrow = httpRule('*.a.test', { isTls: true });
    const exact = httpRule('x.a.test', { destPort: 443 });
    assert.deepEqual(allowed(wide, narrow, exact), {
      '*.test:443': [wide.id],
      '*.a.test:443': [narrow.id],
      'x.a.test:443': [narrow.id, exact.id],
      '*': [],
    });
  });

  it('names every domain once, whatever the rules', () => {
    const host = fc.constantFrom('a.test', 'b.a.test', '*.test', '*.a.test', '203.0.113.1', '2001:db8::1');
    const rule = fc.record({ host, isTls: fc.boolean(), destPort: fc.constantFrom(80, 443, 8080) });
    fc.assert(
      fc.property(fc.uniqueArray(rule, { selector: (each) => JSON.stringify(each) }), (wanted) => {
        const rules = wanted.map((each) => httpRule(each.host, each));
        const hosts = rendered(...rules).routes.virtual_hosts as unknown as readonly VirtualHost[];
        const domains = hosts.flatMap(({ domains: own }) => own);
        assert.equal(new Set(domains).size, domains.length);
        // And no rule is lost.
        const named = new Set(hosts.flatMap(({ routes }) => routes.map(({ route }) => route?.cluster)));
        for (const { id } of rules) assert.ok(named.has(id), id);
      }),
    );
  });
});
