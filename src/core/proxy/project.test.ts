import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contains, parseCidrMasking, parseIp, parseSet } from '../ip/index.ts';
import { projectClusterInfo } from '../project/index.ts';
import { egressObject, planOf, proxyObject } from '../testing/proxies.ts';
import { forbiddenFor } from './forbidden.ts';
import { distinctNames, nameFor, serviceNameOf } from './names.ts';
import { projectEgress } from './project.ts';
import { projectProxy } from './project-proxy.ts';

test('both spellings are one list, and names are made once', () => {
  const view = projectEgress(
    egressObject('a/a', {
      spec: {
        rules: {
          tcp: [{ sourceport: 1, destport: 2, ips: ' 10.0.0.2,10.0.0.1 , 10.0.0.2' }],
          http: [{ host: 'A.Example.com' }],
        },
        tcps: [{ name: 'tcp-1', sourceport: 3, destport: 4, domain: 'DB.Example.com' }],
        https: [{ host: '*.example.com', tls: true, destport: 8443 }, { host: '2001:db8::1' }],
      },
    }),
  );
  assert.deepEqual(
    view.rules.map(({ name }) => name),
    ['tcp-1', 'tcp-1-2', 'http-a-example-com', 'https-any-example-com-8443', 'http-2001-db8-1'],
  );
  const [first, second, third, fourth, fifth] = view.rules;
  assert.ok(first?.kind === 'tcp' && second?.kind === 'tcp');
  assert.deepEqual(first.to, { kind: 'addresses', ips: ['10.0.0.1', '10.0.0.2'] });
  assert.deepEqual(second.to, { kind: 'domain', name: 'db.example.com' });
  assert.ok(third?.kind === 'http' && fourth?.kind === 'http' && fifth?.kind === 'http');
  assert.deepEqual([third.host, third.destPort], [{ kind: 'exact', name: 'a.example.com' }, 80]);
  assert.deepEqual(fourth.host, { kind: 'suffix', suffix: '.example.com' });
  assert.deepEqual(fifth.host, { kind: 'address', ip: '2001:db8::1' });
  assert.equal(view.proxy, 'bcs-system/egress-controller');
});

test('a rule that breaks a rule of the API is broken alone; a shape that is wrong breaks the object', () => {
  const tcp = [
    { name: 'good', sourceport: 1, destport: 2, ips: '198.51.100.1' },
    { name: 'bad', sourceport: 3, destport: 4, ips: '1.2.3' },
  ];
  const view = projectEgress(egressObject('a/a', { tcp }));
  assert.deepEqual(
    view.rules.map((rule) => [rule.name, rule.kind]),
    [
      ['good', 'tcp'],
      ['bad', 'broken'],
    ],
  );
  const broken = projectEgress(egressObject('a/a', { spec: { rules: { tcp: 'all' } } }));
  assert.equal(broken.problem?.reason, 'SpecInvalid');
  assert.deepEqual(broken.rules, []);
});

test('a tenant or spec that cannot be read permits nothing', () => {
  assert.equal(projectProxy(proxyObject()).tenants, undefined);
  const half = projectProxy(proxyObject(undefined, { tenants: [{ namespaces: ['a'], domains: ['*.com'] }] }));
  assert.deepEqual(half.tenants?.[0]?.namespaces, []);
  assert.ok(half.problems.length > 0);
  const none = projectProxy(proxyObject(undefined, { tenants: 'everybody' }));
  assert.deepEqual(none.tenants, []);
  const plan = planOf({
    proxies: [proxyObject(undefined, { tenants: 'everybody' })],
    egresses: [egressObject('a/a', { http: [{ host: 'a.example.com' }] })],
  });
  const [rule] = plan.egresses.get('a/a')?.rules ?? [];
  assert.ok(rule?.verdict.ok === false && rule.verdict.finding.reason === 'ClaimNotAllowed');
});

test('names of Services are labels of DNS, and long ones stay different', () => {
  assert.equal(serviceNameOf('shop', 'db'), 'shop-db');
  assert.match(serviceNameOf('1.shop', 'db'), /^e1-shop-db-[0-9a-f]{8}$/);
  const long = [`${'a'.repeat(70)}1`, `${'a'.repeat(70)}2`].map((egress) => serviceNameOf(egress, 'db'));
  assert.notEqual(long[0], long[1]);
  for (const name of [...long, nameFor('https', `${'x.'.repeat(60)}com`)])
    assert.match(name, /^[a-z][-a-z0-9]{0,61}[a-z0-9]$/);
  assert.deepEqual(distinctNames(['a', 'a', 'a-2']), ['a', 'a-2', 'a-2-2']);
});

test('names lead nowhere local, and inside only where it was opened', () => {
  const ranges = projectClusterInfo({
    metadata: { name: 'default' },
    status: { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'] }, nodeIP: { ipv4: ['203.0.113.7'] } } },
  });
  const opened = parseSet(['10.0.0.0/8', '169.254.0.0/16', '127.0.0.0/8', 'fd00::/8'], parseCidrMasking);
  assert.ok(opened.ok);
  const isForbidden = (text: string, allowed = opened.value): boolean => {
    const [set, ip] = [parseSet(forbiddenFor(ranges, allowed), parseCidrMasking), parseIp(text)];
    assert.ok(set.ok && ip.ok, text);
    return contains(set.value, ip.value);
  };
  const refused = [
    ...['127.0.0.1', '0.0.0.0', '169.254.169.254', '100.100.100.200', '168.63.129.16', '224.0.0.1', '255.255.255.255'],
    ...['10.244.9.9', '203.0.113.7', '192.168.1.1', '172.16.0.1', '100.64.0.1'],
    ...[
      '::1',
      '::',
      'fe80::1',
      'fd00:ec2::254',
      'ff02::1',
      '2002:7f00:1::',
      '64:ff9b::7f00:1',
      '64:ff9b::af4:1',
      '64:ff9b:1::1',
      '2001:10::1',
      '2001:0:1::1',
      '100::1',
    ],
  ];
  for (const text of refused) assert.ok(isForbidden(text), text);
  for (const text of ['10.1.2.3', '198.51.100.1', 'fd12::1', '2606:4700::1', '64:ff9b::c633:6401'])
    assert.ok(!isForbidden(text), text);
  const closed = parseSet([], parseCidrMasking);
  assert.ok(closed.ok);
  for (const text of ['10.1.2.3', 'fd12::1', '64:ff9b::a01:203']) assert.ok(isForbidden(text, closed.value), text);
});
