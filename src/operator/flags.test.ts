import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressError } from '../api/error.ts';
import { type OperatorFlags, operatorDefaults, readOperatorFlags } from './flags.ts';

const { proxyNamespace: _, namespace: __, ...usual } = operatorDefaults;
const read = (flags: Partial<OperatorFlags> = {}, env = {}) => readOperatorFlags({ ...usual, ...flags }, env);

test('without flags: the default namespaces, CoreDNS, and no more than that', () => {
  const options = read();
  assert.deepEqual(options.proxyNamespaces, ['bcs-system']);
  assert.deepEqual(options.dns, { configMap: { namespace: 'kube-system', name: 'coredns' }, servers: [] });
  assert.deepEqual(options.defaultProxy, { key: 'bcs-system/egress-controller', spec: {} });
  assert.deepEqual(options.reservedNames, ['cluster.local']);
  assert.equal(read({}, { POD_NAMESPACE: 'here' }).namespace, 'here');
});

test('flags are taken as they were written', () => {
  const options = read({
    proxyNamespace: ['a', 'b'],
    defaultProxy: '{"minReplicas":3}',
    defaultProxyName: 'a/shared',
    clusterDomain: 'Corp.Local.',
    reservedName: ['example.com'],
    nameserver: ['198.51.100.53'],
    dnsServer: ['10.96.0.10', '127.0.0.1:1053', 'fd00::a'],
  });
  assert.deepEqual(options.proxyNamespaces, ['a', 'b']);
  assert.deepEqual(options.defaultProxy, { key: 'a/shared', spec: { minReplicas: 3 } });
  assert.equal(read({ defaultProxyName: 'none' }).defaultProxy, undefined);
  assert.deepEqual(options.reservedNames, ['corp.local', 'example.com']);
  assert.deepEqual(options.dns?.servers, ['10.96.0.10', '127.0.0.1:1053', 'fd00::a']);
  assert.equal(read({ dns: 'none' }).dns, undefined);
});

test('what is not allowed is refused with the flag, the value and what is allowed', () => {
  const refused: readonly (readonly [Partial<OperatorFlags>, RegExp])[] = [
    [{ proxyNamespace: ['Upper'] }, /^--proxy-namespace is "Upper": allowed is the name of a namespace/],
    [{ defaultProxy: '{"minReplicas":0}' }, /^--default-proxy is .*: allowed is the spec of a BCSEgressController/],
    [{ defaultProxy: 'two' }, /^--default-proxy/],
    [{ defaultProxyName: 'shared' }, /^--default-proxy-name is "shared": allowed is namespace\/name/],
    [{ reservedName: ['a..b'] }, /^--reserved-name is "a\.\.b": allowed is a domain name/],
    [{ nameserver: ['dns.example.com'] }, /^--nameserver is "dns.example.com": allowed is an IP address/],
    [{ dns: 'bind' }, /^--dns is "bind": allowed is coredns, or none/],
    [{ dnsConfigMap: 'coredns' }, /^--dns-config-map is "coredns"/],
    [{ dnsServer: ['kube-dns'] }, /^--dns-server/],
    [{ webhookUrl: 'http://a' }, /^--webhook-url/],
  ];
  for (const [flags, words] of refused) {
    assert.throws(
      () => read(flags),
      (error: unknown) => error instanceof EgressError && error.code === 'CONFIG_INVALID' && words.test(error.message),
      String(words),
    );
  }
});
