import assert from 'node:assert/strict';
import { test } from 'node:test';
import { egressObject, planOf } from '../testing/proxies.ts';

/** What resolvers, libraries and shells take for 127.0.0.1, a link-local address or a name of the cluster. */
const spellings = [
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '127.1',
  '127.0.0.1.',
  '127.0.0.0x1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '::7f00:1',
  '0:0:0:0:0:0:0:0',
  '[::1]',
  'fe80::1%eth0',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  '64:ff9b::7f00:1',
  '64:ff9b:1::7f00:1',
  '255.255.255.255',
  'ff02::1',
  '169.254.169.254/32',
  '0.0.0.0/0',
  'localhost',
  'localhost.',
  'kubernetes',
  'kubernetes.default.svc',
  'KUBERNETES.Default.Svc.Cluster.Local.',
  'api.example.com.default.svc.cluster.local',
  '*',
  '*.*.example.com',
  '*.cluster.local',
  '*.svc',
  'кластер.example',
  'db.example.com\u0000.cluster.local',
  'db.example.com:443',
  'a@127.0.0.1',
];

test('no other spelling of an inside address or name is served, as a destination or as a host', () => {
  const rules = spellings.flatMap((text, index) => [
    egressObject(`a/t${index}`, { tcp: [{ sourceport: index + 1, destport: 80, ips: text }] }),
    egressObject(`a/d${index}`, { tcp: [{ sourceport: index + 1001, destport: 80, domain: text }] }),
    egressObject(`a/h${index}`, { http: [{ host: text }] }),
    egressObject(`a/s${index}`, { http: [{ host: text, tls: true }] }),
  ]);
  const plan = planOf({ egresses: rules });
  const served = [...plan.proxies.values()].flatMap((proxy) => proxy.rules.rules);
  assert.deepEqual(served, []);
  assert.equal(plan.egresses.size, 4 * spellings.length);
});

test('an honest name is served in any spelling that DNS takes for it', () => {
  const names = ['db.example.com', 'DB.Example.COM', 'xn--bcher-kva.example'];
  const plan = planOf({
    egresses: names.map((domain, index) =>
      egressObject(`a/n${index}`, { tcp: [{ sourceport: index + 1, destport: 80, domain }] }),
    ),
  });
  const verdicts = [...plan.egresses.values()].map(({ rules: [rule] }) => [rule?.verdict.ok, rule?.publish]);
  assert.deepEqual(verdicts, [
    [true, 'db.example.com'],
    // The older object, or the first by name, has it.
    [false, undefined],
    [true, 'xn--bcher-kva.example'],
  ]);
});
