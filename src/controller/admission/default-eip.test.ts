import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Eip } from '../../core/cluster/view.ts';
import { addresses, contains, type IntervalSet, type Ip, poolOf } from '../../core/ip/index.ts';
import { projectGateway } from '../../core/project/index.ts';
import { chooseDefaultEip } from './default-eip.ts';
import { configOf, gateway, usualCluster, viewOf } from './testing/cluster.ts';

const { settings } = viewOf(usualCluster, configOf('both'));
const none: Eip = { ipv4: undefined, ipv6: undefined };

/** Pools of up to eight addresses with holes, of one family or both with equal numbers. */
const anyPools = fc
  .record({
    places: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 }),
    families: fc.constantFrom('ipv4', 'ipv6', 'both'),
  })
  .map(({ places, families }) => ({
    ...(families === 'ipv6' ? {} : { ipv4: places.map((place) => `10.7.0.${place}`) }),
    ...(families === 'ipv4' ? {} : { ipv6: places.map((place) => `fd00:7::${place}`) }),
  }));
const anyTaken = fc
  .uniqueArray(fc.integer({ min: 1, max: 12 }))
  .map((places) => new Set<string>(places.flatMap((place) => [`10.7.0.${place}`, `fd00:7::${place}`])));

const specOf = (ippools: object) => projectGateway(gateway('new', { ippools })).spec ?? assert.fail('unreadable');
const poolOfTexts = (texts: readonly string[] = []): IntervalSet => {
  const pool = poolOf(texts);
  return pool.ok ? pool.value : assert.fail(pool.message);
};

test('the default is in the pools, whole, and free if a whole EIP is free', () => {
  fc.assert(
    fc.property(anyPools, anyTaken, (pools, taken) => {
      const isTaken = (ip: Ip): boolean => taken.has(ip);
      const chosen = chooseDefaultEip({ spec: specOf(pools), old: none, settings, isTaken });
      for (const family of ['ipv4', 'ipv6'] as const) {
        const pool = poolOfTexts(pools[family]);
        const ip = chosen[family];
        assert.equal(ip !== undefined, pool.intervals.length > 0);
        if (ip === undefined) continue;
        assert.ok(contains(pool, ip));
        // Both pools have the same holes here, so a place is free in both or in none.
        assert.equal(isTaken(ip), [...addresses(pool)].every(isTaken));
      }
    }),
  );
});

test('what was chosen is chosen again, whether it is written into the spec or only known from before', () => {
  fc.assert(
    fc.property(anyPools, anyTaken, (pools, taken) => {
      const isTaken = (ip: Ip): boolean => taken.has(ip);
      const chosen = chooseDefaultEip({ spec: specOf(pools), old: none, settings, isTaken });
      const written = { ...pools, ipv4DefaultEIP: chosen.ipv4 ?? '', ipv6DefaultEIP: chosen.ipv6 ?? '' };
      // From now on policies use it.
      const inUse = (ip: Ip): boolean => isTaken(ip) || ip === chosen.ipv4 || ip === chosen.ipv6;
      assert.deepEqual(chooseDefaultEip({ spec: specOf(written), old: none, settings, isTaken: inUse }), chosen);
      assert.deepEqual(chooseDefaultEip({ spec: specOf(pools), old: chosen, settings, isTaken: inUse }), chosen);
    }),
  );
});
