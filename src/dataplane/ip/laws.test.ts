/** Laws of applying: for any two networks, the way from one to the other ends at the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { networkDesired } from './testing/desired.ts';
import { createFakeNetwork } from './testing/fake-network.ts';
import { applied, essence } from './testing/node.ts';

const peers = fc.uniqueArray(fc.integer({ min: 12, max: 40 }), { maxLength: 5 });

const networks = fc
  .record({
    gateways: peers,
    workers: peers,
    eips: fc.uniqueArray(fc.integer({ min: 100, max: 140 }), { maxLength: 5 }),
    hasJump: fc.boolean(),
    mtu: fc.constantFrom(1400, 1450),
    port: fc.constantFrom(7789, 7790),
    self: fc.constantFrom(11, 50),
    parent: fc.constantFrom('eth0', 'peer0'),
  })
  .map(networkDesired);

test('what is applied after anything is what is applied to an empty node', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(networks, { maxLength: 4 }), networks, async (before, last) => {
      const [used, fresh] = [createFakeNetwork(), createFakeNetwork()];
      for (const desired of before) assert.deepEqual((await applied(used, desired)).refused, []);
      await applied(used, last);
      await applied(fresh, last);
      assert.deepEqual(essence(await used.read()), essence(await fresh.read()));
      assert.deepEqual(await applied(used, last), { changed: 0, refused: [] });
    }),
    { numRuns: 100 },
  );
});

test('remove leaves what was there before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(networks, { minLength: 1, maxLength: 3 }), async (all) => {
      const network = createFakeNetwork();
      const before = essence(await network.read());
      for (const desired of all) await applied(network, desired);
      await network.remove();
      assert.deepEqual(essence(await network.read()), before);
    }),
    { numRuns: 50 },
  );
});
