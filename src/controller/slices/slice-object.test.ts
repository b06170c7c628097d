import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyView } from '../../core/cluster/view.ts';
import { projectClusterPolicy, projectPolicy } from '../../core/project/index.ts';
import { policyObject } from '../../core/testing/objects.ts';
import type { CachedSlice } from '../loop/caches.ts';
import { changesOf } from './reconcile.ts';
import { isMarkedFor, policyOfSlice, sliceObject, slicePrefixOf } from './slice-object.ts';

const policyOf = (key: string, uid = 'first'): PolicyView =>
  key.includes('/') ? projectPolicy(policyObject(key, { uid })) : projectClusterPolicy(policyObject(key, { uid }));
const endpoint = { ns: 'red', pod: 'p', ipv4: ['10.244.0.1'], ipv6: [], node: 'a' };

/** The slice as it is kept after it was written for a policy. */
const kept = (policy: PolicyView, change: Partial<CachedSlice> = {}): CachedSlice => {
  const { metadata, endpoints } = sliceObject(policy, { name: `${policy.name}-00001`, endpoints: [endpoint] });
  return {
    identity: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: 'slice',
      resourceVersion: '1',
      generation: 1,
      isDeleting: false,
      finalizers: [],
    },
    policy: metadata.labels?.['spidernet.io/policy-name'],
    generateName: metadata.generateName,
    owners: metadata.ownerReferences ?? [],
    endpoints,
    ...change,
  };
};

describe('a slice belongs to', () => {
  for (const key of ['red/shop', 'shop']) {
    it(`the policy it was written for: ${key}`, () => {
      const slice = kept(policyOf(key));
      assert.deepEqual([policyOfSlice(slice), isMarkedFor(slice, policyOf(key))], [key, true]);
    });
  }

  it('its owner, whatever the label says', () => {
    const slice = kept(policyOf('red/shop'), { policy: 'other' });
    assert.deepEqual([policyOfSlice(slice), isMarkedFor(slice, policyOf('red/shop'))], ['red/shop', false]);
  });

  it('the policy of the label when it has no owner, or only a foreign one', () => {
    const foreign = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
    for (const owners of [[], [foreign]]) {
      const slice = kept(policyOf('red/shop'), { owners });
      assert.deepEqual([policyOfSlice(slice), isMarkedFor(slice, policyOf('red/shop'))], ['red/shop', false]);
    }
  });

  it('no policy that can exist without owner and label', () => {
    const nobodys = (key: string) => policyOfSlice(kept(policyOf(key), { owners: [], policy: undefined }));
    assert.deepEqual([nobodys('red/shop'), nobodys('shop')], ['red/', '']);
  });

  it('its policy by metadata.generateName too, as tools for the Go implementation look for it', () => {
    for (const name of ['shop', 'n'.repeat(253)]) {
      const slice = kept(policyOf(`red/${name}`));
      assert.ok((slice.generateName?.length ?? 0) <= 253, 'the API server takes no longer one');
      assert.equal(isMarkedFor({ ...slice, generateName: undefined }, policyOf(`red/${name}`)), false);
    }
    assert.equal(kept(policyOf('red/shop')).generateName, 'shop-');
  });
});

describe('names', () => {
  it('are those of the policy while they fit', () => {
    assert.equal(slicePrefixOf(policyOf('red/shop')), 'shop');
    const { metadata } = sliceObject(policyOf(`red/${'n'.repeat(63)}`), { name: 'x', endpoints: [] });
    assert.equal(metadata.labels?.['spidernet.io/policy-name'], 'n'.repeat(63));
  });

  it('are cut, valid and still different where they do not', () => {
    // The cut is in the middle of what may not stand at an end.
    const names = ['x', 'y'].map(
      (last) => `${'n'.repeat(50)}${'.-'.repeat(5)}${'m'.repeat(185)}${'-.'.repeat(3)}${last}`,
    );
    const labels = names.map((name) => {
      const { metadata } = sliceObject(policyOf(`red/${name}`), { name: 'x', endpoints: [] });
      return metadata.labels?.['spidernet.io/policy-name'] ?? '';
    });
    const prefixes = names.map((name) => slicePrefixOf(policyOf(`red/${name}`)));
    for (const [found, limit] of [[labels, 63] as const, [prefixes, 240] as const]) {
      assert.equal(new Set(found).size, 2);
      for (const text of found) assert.ok(text.length <= limit && /^[a-z0-9].*[a-z0-9]-[a-z0-9]+$/.test(text), text);
    }
  });
});

describe('changesOf', () => {
  const state = { existing: [kept(policyOf('red/shop'))], wanted: [endpoint], limit: 100 };

  it('is empty when all is right', () => {
    assert.deepEqual(changesOf({ ...state, policy: policyOf('red/shop') }), { write: [], remove: [] });
  });

  it('writes a slice again whose owner is an earlier policy of the same name', () => {
    const { write, remove } = changesOf({ ...state, policy: policyOf('red/shop', 'second') });
    assert.deepEqual([write, remove], [[{ name: 'shop-00001', endpoints: [endpoint] }], []]);
  });

  it('removes every slice of a policy that is gone', () => {
    assert.deepEqual(changesOf({ ...state, policy: undefined, wanted: [] }), { write: [], remove: ['shop-00001'] });
  });
});
