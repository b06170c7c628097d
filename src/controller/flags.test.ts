import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ControllerFlags, controllerDefaults, readFlags } from './flags.ts';

const { healthAddress, pageAuth, webhookAddress, logLevel } = controllerDefaults;
const read = (flags: Partial<ControllerFlags>, env: { POD_NAMESPACE?: string } = {}) =>
  readFlags({ healthAddress, pageAuth, webhookAddress, logLevel, ...flags }, env);

describe('readFlags', () => {
  it('has defaults for everything', () => {
    assert.deepEqual(read({}), {
      configPath: undefined,
      kubeconfigPath: undefined,
      health: { port: 8080 },
      pageAuth: 'none',
      webhook: { port: 9443 },
      webhookUrl: undefined,
      namespace: 'sallyport',
      logLevel: 'info',
    });
  });

  it('takes the namespace of the pod, and a flag before it', () => {
    assert.equal(read({}, { POD_NAMESPACE: 'egress' }).namespace, 'egress');
    assert.equal(read({ namespace: 'other' }, { POD_NAMESPACE: 'egress' }).namespace, 'other');
  });

  it('reads addresses of both families, and names', () => {
    assert.deepEqual(read({ healthAddress: '127.0.0.1:0' }).health, { host: '127.0.0.1', port: 0 });
    assert.deepEqual(read({ healthAddress: '[::1]:81' }).health, { host: '::1', port: 81 });
    assert.deepEqual(read({ healthAddress: 'localhost:81' }).health, { host: 'localhost', port: 81 });
  });

  const refused: readonly [Partial<ControllerFlags>, RegExp][] = [
    [{ healthAddress: '8080' }, /^--health-address is "8080": allowed is an address and a port/],
    [{ webhookAddress: ':70000' }, /^--webhook-address is ":70000": allowed is an address and a port/],
    [{ webhookAddress: '::1:80' }, /^--webhook-address is "::1:80"/],
    [{ webhookUrl: 'http://a' }, /^--webhook-url is "http:\/\/a": allowed is a URL that begins with https/],
    [{ namespace: 'Upper' }, /^--namespace is "Upper": allowed is the name of a namespace/],
    [{ logLevel: 'loud' }, /^--log-level is "loud": allowed is one of debug, info/],
  ];
  for (const [flags, sentence] of refused) {
    it(`refuses ${JSON.stringify(flags)} with one sentence`, () => {
      assert.throws(() => read(flags), { code: 'CONFIG_INVALID', message: sentence });
    });
  }
});
