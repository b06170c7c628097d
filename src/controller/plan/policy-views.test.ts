import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createPlanner } from '../../core/plan/plan.ts';
import { projectClusterPolicy, projectPolicy } from '../../core/project/index.ts';
import { recordPolicy } from '../../core/status/record.ts';
import { gatewayObject, nodeObject, policyObject, worldOf } from '../../core/testing/objects.ts';
import { viewOf } from '../../core/testing/world.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';
import { Store } from '../../runtime/kube/store.ts';
import { type CachedPolicy, identityOf } from '../loop/caches.ts';
import { PolicyViews } from './policy-views.ts';

const gateway = gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] });
const around = viewOf(worldOf([nodeObject('a', ['10.0.0.1'])], [gateway], []));

const keys = ['red/a', 'red/b', 'red/c', 'x', 'y'] as const;
const event = fc.record({
  key: fc.constantFrom(...keys),
  what: fc.constantFrom('put' as const, 'delete' as const, 'catch up' as const, 'catch up' as const),
  allocator: fc.constantFrom('rr', 'default'),
});

describe('PolicyViews', () => {
  it('are what the caches hold with what was decided last, in any history', () => {
    fc.assert(
      fc.property(fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 12 }), (history) => {
        const stores = [new Store<CachedPolicy>({}), new Store<CachedPolicy>({})] as const;
        const storeOf = (key: string) => stores[key.includes('/') ? 0 : 1];
        const views = new PolicyViews(stores.map((store) => ({ store })));
        const planner = createPlanner();
        const bindings = new Map<string, ReturnType<typeof recordPolicy>>();
        const put = (key: string, allocator: string, status: object | undefined): void => {
          const object = { ...policyObject(key, { gateway: 'g', allocator }), status };
          const view = (key.includes('/') ? projectPolicy : projectClusterPolicy)(object);
          // Test objects have the metadata that the API server gives.
          storeOf(key).put(key, { identity: identityOf(object as KubeObject), view, status });
        };
        for (const events of history) {
          for (const { key, what, allocator } of events) {
            if (what === 'delete') storeOf(key).delete(key);
            else if (what === 'put') put(key, allocator, storeOf(key).get(key)?.status);
            else if (storeOf(key).get(key) !== undefined) put(key, allocator, bindings.get(key));
          }
          const looked = views.look();
          const kept = stores.flatMap((store) => [...store.values()]);
          assert.deepEqual(
            looked.map(({ uid }) => uid),
            kept.map(({ view }) => view.uid),
          );
          for (const { key, recorded } of looked) {
            const { eip, node, slot } = bindings.get(key) ?? {};
            if (!bindings.has(key)) continue;
            assert.deepEqual([recorded.eip.ipv4, recorded.node, recorded.slot], [eip?.ipv4, node, slot], key);
          }
          const { plan, changes } = planner({ ...around, policies: looked });
          views.remember(changes);
          bindings.clear();
          for (const each of plan.policies) bindings.set(each.key, recordPolicy(each));
        }
      }),
      { numRuns: 200 },
    );
  });
});
