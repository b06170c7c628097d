import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trustPatch } from '../../runtime/serve/webhook-trust.ts';
import { judges } from './handlers.ts';
import { webhookConfiguration } from './webhooks.ts';

const clientConfig = { url: 'https://192.0.2.7:9443/validate', caBundle: 'b2xk' };

test('every judge is asked, and nobody is asked without one', () => {
  for (const [kind, path] of [
    ['Mutating', 'mutate'],
    ['Validating', 'validate'],
  ] as const) {
    const names = webhookConfiguration(kind, clientConfig).webhooks?.map(({ name }) => name);
    assert.deepEqual(
      names,
      Object.keys(judges[path]).map((resource) => `${resource.replace('/', '-')}.egressgateway.spidernet.io`),
    );
  }
});

test('the patch sets the bundle where it differs, and only there', () => {
  const names = ['first', 'second', 'third'];
  const bundles = ['new', 'old', undefined];
  const webhooks = names.map((name, index) => {
    const caBundle = bundles[index];
    return { name, clientConfig: caBundle === undefined ? {} : { caBundle } };
  });
  const configuration = { metadata: { name: 'sallyport' }, webhooks };
  assert.deepEqual(trustPatch(configuration, 'new'), [
    { op: 'test', path: '/webhooks/1/name', value: 'second' },
    { op: 'add', path: '/webhooks/1/clientConfig/caBundle', value: 'new' },
    { op: 'test', path: '/webhooks/2/name', value: 'third' },
    { op: 'add', path: '/webhooks/2/clientConfig/caBundle', value: 'new' },
  ]);
  assert.deepEqual(trustPatch({ metadata: { name: 'sallyport' } }, 'new'), []);
});
