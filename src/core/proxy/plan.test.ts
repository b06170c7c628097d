import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectClusterInfo } from '../project/index.ts';
import { egressObject, planOf, proxyObject } from '../testing/proxies.ts';
import { letThrough } from './gate.ts';
import type { ProxiesPlan } from './plan.ts';
import { projectEgress } from './project.ts';

const defaultProxy = 'bcs-system/egress-controller';
const db = { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' };

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
      from: ['hn1'],
    },
    {
      kind: 'tcp',
      id: 'hn1/hn1-egress/tcp-8080',
      listenPort: 8080,
      destPort: 8080,
      to: { kind: 'domain', name: 'gamedb.proxy.tencent.com' },
      algorithm: 'roundrobin',
      idleSeconds: 3600,
      from: ['hn1'],
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

test('one host has a TCP rule and a transparent TLS rule in one object', () => {
  const plan = planOf({
    egresses: [
      egressObject('a/a', {
        at: 1,
        tcp: [db],
        http: [{ name: 'web', host: 'db.example.com', tls: true, transparent: true }],
      }),
      egressObject('b/b', { at: 2, tcp: [{ ...db, sourceport: 1 }] }),
    ],
  });
  assert.deepEqual(
    ['a/a/db', 'a/a/web', 'b/b/db'].map((id) => reasonOf(plan, id)),
    ['served', 'served', 'DomainTaken'],
  );
  assert.equal(ruleOf(plan, 'a/a/db').publish, 'db.example.com');
  assert.equal(ruleOf(plan, 'a/a/web').publish, 'db.example.com');
});

test('reserved ports, addresses of the proxy itself and missing proxies are refused one by one', () => {
  const plan = planOf({
    egresses: [
      egressObject('a/a', {
        tcp: [
          { name: 'reserved', sourceport: 61000, destport: 1, ips: '198.51.100.1' },
          { name: 'loopback', sourceport: 1, destport: 61001, ips: '198.51.100.1,127.0.0.1' },
          { name: 'pod', sourceport: 3, destport: 80, ips: '10.244.3.4' },
        ],
        http: [{ name: 'zero', host: '0.0.0.0' }],
      }),
      egressObject('a/b', { controller: { namespace: 'x', name: 'y' }, tcp: [db] }),
    ],
  });
  const found = ['a/a/reserved', 'a/a/loopback', 'a/a/pod', 'a/a/zero', 'a/b/db'].map((id) => reasonOf(plan, id));
  assert.deepEqual(found, [
    'PortReserved',
    'AddressForbidden',
    'AddressForbidden',
    'AddressForbidden',
    'ProxyNotFound',
  ]);
});

/** The reasons of rules that name one address each. */
const reasonsOfAddresses = (addresses: readonly string[], spec: object, destport = 80): Record<string, string> => {
  const rules = addresses.map((ips, index) => ({ name: `r${index}`, sourceport: index + 1, destport, ips }));
  const plan = planOf({
    proxies: [proxyObject(defaultProxy, spec)],
    egresses: [egressObject('a/a', { tcp: rules })],
  });
  return Object.fromEntries(addresses.map((ips, index) => [ips, reasonOf(plan, `a/a/r${index}`)]));
};

const insideAddresses = [
  '169.254.169.254',
  '100.100.100.200',
  'fe80::1',
  // A Service, a pod, a node and an API server that is no node.
  '10.96.0.1',
  '10.244.3.4',
  '10.77.0.11',
  '192.0.2.10',
  // The same Service through NAT64.
  '64:ff9b::a60:1',
];
const neverAddresses = ['127.0.0.1', '0.0.0.0', '224.0.0.1', '::1'];

test('a rule that names an inside address is refused, also in other spellings', () => {
  const addresses = [...insideAddresses, ...neverAddresses];
  assert.deepEqual(
    reasonsOfAddresses(addresses, {}),
    Object.fromEntries(addresses.map((ip) => [ip, 'AddressForbidden'])),
  );
  // IPv4-mapped spellings are no addresses of a rule at all.
  assert.deepEqual(reasonsOfAddresses(['::ffff:7f00:1', '::ffff:a9fe:a9fe'], { allowedRanges: ['::/0'] }), {
    '::ffff:7f00:1': 'SpecInvalid',
    '::ffff:a9fe:a9fe': 'SpecInvalid',
  });
  // A private address outside the cluster is what most rules are about.
  assert.deepEqual(reasonsOfAddresses(['10.1.2.3'], {}), { '10.1.2.3': 'served' });
});

test('a rule that names a Service or a pod is refused also where no EgressClusterInfo tells the ranges of the cluster', () => {
  const rules = ['10.96.0.1', '10.244.3.4', 'fd00:10:96::1', '64:ff9b::a60:1', '198.51.100.7'];
  const reasons = (spec: object, status?: object) => {
    const plan = planOf({
      ranges: projectClusterInfo(status === undefined ? undefined : { metadata: { name: 'default' }, status }),
      proxies: [proxyObject(defaultProxy, spec)],
      egresses: [
        egressObject('a/a', {
          tcp: rules.map((ips, index) => ({ name: `r${index}`, sourceport: index + 1, destport: 443, ips })),
        }),
      ],
    });
    return rules.map((_, index) => reasonOf(plan, `a/a/r${index}`));
  };
  const refused = 'AddressForbidden';
  assert.deepEqual(reasons({}), [refused, refused, refused, refused, 'served']);
  // The administrator says what is outside.
  const opened = { allowedRanges: ['10.96.0.0/16', '64:ff9b::a60:1'] };
  assert.deepEqual(reasons(opened), ['served', refused, refused, 'served', 'served']);
  // A network plugin that gives nodes no range tells nobody where pods are.
  const services = { clusterIP: { ipv4: ['10.96.0.0/12'] } };
  assert.deepEqual(reasons({}, { egressIgnoreCIDR: services })[1], refused);
  assert.deepEqual(reasons({}, { egressIgnoreCIDR: { ...services, custom: { ipv4: ['10.96.0.0/16'] } } })[1], 'served');
});

test('allowedRanges opens inside addresses that rules name, and never loopback', () => {
  const everything = { allowedRanges: ['0.0.0.0/0', '::/0'] };
  assert.deepEqual(
    reasonsOfAddresses(insideAddresses, everything),
    Object.fromEntries(insideAddresses.map((ip) => [ip, 'served'])),
  );
  assert.deepEqual(
    reasonsOfAddresses(neverAddresses, everything),
    Object.fromEntries(neverAddresses.map((ip) => [ip, 'AddressForbidden'])),
  );
  const ownPort = reasonsOfAddresses(['10.244.3.4'], everything, 61080);
  assert.deepEqual(ownPort, { '10.244.3.4': 'ProxyLoop' });
});

test('a rule for a name of the cluster is refused, so that no tenant answers for it', () => {
  const names = [
    'kubernetes.default.svc.cluster.local',
    'cluster.local',
    'shop.svc',
    'KUBERNETES.default.svc.Cluster.Local',
    '1.0.0.10.in-addr.arpa',
    'db.localhost',
    'git.corp.example.com',
  ];
  const fine = ['notcluster.local', 'db.example.com', 'svc.example.com'];
  const rules = [...names, ...fine].map((domain, index) => ({
    name: `r${index}`,
    sourceport: index + 1,
    destport: 1,
    domain,
  }));
  const plan = planOf({
    reservedNames: ['cluster.local', 'corp.example.com'],
    egresses: [egressObject('a/a', { tcp: rules, http: [{ name: 'any', host: '*.svc.cluster.local' }] })],
  });
  const found = rules.map(({ name, domain }) => [domain, reasonOf(plan, `a/a/${name}`)]);
  assert.deepEqual(Object.fromEntries(found), {
    ...Object.fromEntries(names.map((name) => [name, 'NameReserved'])),
    ...Object.fromEntries(fine.map((name) => [name, 'served'])),
  });
  assert.equal(reasonOf(plan, 'a/a/any'), 'NameReserved');
});

test('only allowedNames are published; a TCP rule keeps its Service, a transparent host is refused', () => {
  const plan = planOf({
    proxies: [proxyObject(defaultProxy, { allowedNames: ['example.com'] })],
    egresses: [
      egressObject('a/a', {
        at: 1,
        tcp: [db, { ...db, name: 'other', sourceport: 1, ips: 'db.example.org' }],
        http: [{ name: 'web', host: 'www.example.org', transparent: true }],
      }),
    ],
  });
  assert.equal(ruleOf(plan, 'a/a/db').publish, 'db.example.com');
  const other = ruleOf(plan, 'a/a/other');
  assert.deepEqual([other.publish, other.withheld?.reason], [undefined, 'NameNotAllowed']);
  assert.deepEqual(other.service, { name: 'a-other', ports: [1] });
  assert.equal(reasonOf(plan, 'a/a/web'), 'NameNotAllowed');
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
