import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiVersionOf, coreResource, pathOf, type Resource, refKey, refOf } from './resource.ts';

const pods = coreResource('pods', 'Pod', true);
const policies: Resource = {
  group: 'test.io',
  version: 'v1beta1',
  plural: 'policies',
  kind: 'Policy',
  namespaced: false,
};

test('a key and its reference are two forms of one name', () => {
  for (const key of ['shop/a', 'a']) assert.equal(refKey(refOf(key)), key);
  assert.deepEqual(refOf('shop/a'), { namespace: 'shop', name: 'a' });
});

test('paths follow the group, the scope and the name', () => {
  assert.equal(pathOf(pods), '/api/v1/pods');
  assert.equal(
    pathOf(pods, { namespace: 'shop', name: 'a', subresource: 'status' }),
    '/api/v1/namespaces/shop/pods/a/status',
  );
  assert.equal(pathOf(policies, { namespace: 'ignored', name: 'p' }), '/apis/test.io/v1beta1/policies/p');
  assert.deepEqual([apiVersionOf(pods), apiVersionOf(policies)], ['v1', 'test.io/v1beta1']);
});

test('a name cannot lead out of its path', () => {
  assert.equal(pathOf(policies, { name: '../secrets?x' }), '/apis/test.io/v1beta1/policies/..%2Fsecrets%3Fx');
});
