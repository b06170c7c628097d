import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ProxyFlags, proxyDefaults, readProxyFlags } from './flags.ts';

const read = (flags: Partial<ProxyFlags>) =>
  readProxyFlags({ ...proxyDefaults, controller: 'bcs-system/egress-controller', ...flags });

describe('readProxyFlags', () => {
  it('needs the name of the controller and has defaults for everything else', () => {
    assert.deepEqual(read({}), {
      controller: { namespace: 'bcs-system', name: 'egress-controller' },
      engine: 'envoy',
      program: 'envoy',
      kubeconfigPath: undefined,
      nameservers: [],
      reservedNames: ['cluster.local'],
      report: { port: 61000 },
      pageAuth: 'none',
      stateFolder: '/run/sallyport',
      logLevel: 'info',
    });
  });

  it('looks for the program of the engine in PATH unless it is told where it is', () => {
    assert.equal(read({ engine: 'nginx' }).program, 'nginx');
    assert.equal(read({ engine: 'nginx', engineBinary: '/opt/nginx' }).program, '/opt/nginx');
  });

  const refused: readonly [Partial<ProxyFlags>, RegExp][] = [
    [{ controller: '' }, /^--controller is "": allowed is namespace\/name of the BCSEgressController/],
    [{ controller: 'a/b/c' }, /^--controller is "a\/b\/c"/],
    [{ controller: 'a/..' }, /^--controller is "a\/\.\."/],
    [{ engine: 'squid' }, /^--engine is "squid": allowed is envoy or nginx/],
    [{ nameserver: ['10.0.0.1', 'dns.example.com'] }, /^--nameserver is "dns.example.com": allowed is an IP address/],
    [{ stateFolder: 'run' }, /^--state-folder is "run": allowed is an absolute path/],
    [{ reportAddress: '80' }, /^--report-address is "80"/],
    [{ logLevel: 'loud' }, /^--log-level is "loud"/],
  ];
  for (const [flags, sentence] of refused) {
    it(`refuses ${JSON.stringify(flags)} with one sentence`, () => {
      assert.throws(() => read(flags), { code: 'CONFIG_INVALID', message: sentence });
    });
  }
});
