/** What every Sysctls must do, whatever settings are below it: run on the fake and on files, and on Linux in test/kernel. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Sysctls } from '../sysctls.ts';

/** A machine for one test, with all `settings` below at 0. */
export interface World extends AsyncDisposable {
  /** A new agent on the machine; it remembers what those before it did. */
  open(): Sysctls;
  read(path: string): string | undefined;
  write(path: string, value: string): void;
}

const first = 'net/ipv4/conf/lo/arp_ignore';
const second = 'net/ipv4/conf/lo/arp_announce';
const forwarding = 'net/ipv4/ip_forward';
const checkOfAll = 'net/ipv4/conf/all/rp_filter';
const check = 'net/ipv4/conf/lo/rp_filter';
const absent = 'net/ipv4/conf/nowhere/arp_ignore';

/** The settings that a world must have. */
export const settings = [first, second, forwarding, checkOfAll, check] as const;

/** Declares the suite. */
export const sysctlConformance = (name: string, open: () => Promise<World>): void => {
  const withWorld = (title: string, body: (world: World) => Promise<void>): void => {
    test(title, async () => {
      await using world = await open();
      await body(world);
    });
  };

  describe(`sysctls: ${name}`, () => {
    withWorld('what differs is written once', async (world) => {
      const sysctls = world.open();
      const desired = new Map([
        [first, '1'],
        [second, '0'],
      ]);
      assert.equal(sysctls.isInStep(desired), false);
      assert.deepEqual(await sysctls.apply(desired), { changed: [first], refused: [] });
      assert.equal(world.read(first), '1');
      assert.equal(sysctls.isInStep(desired), true);
      assert.deepEqual(await sysctls.apply(desired), { changed: [], refused: [] });
    });

    withWorld('what others change is set again, and the first value is not forgotten', async (world) => {
      const sysctls = world.open();
      const desired = new Map([[first, '2']]);
      await sysctls.apply(desired);
      world.write(first, '1');
      assert.equal(sysctls.isInStep(desired), false);
      assert.deepEqual((await sysctls.apply(desired)).changed, [first]);
      await sysctls.restore();
      assert.equal(world.read(first), '0');
    });

    withWorld('sources are not checked, or as loosely as the node lets us', async (world) => {
      const sysctls = world.open();
      const desired = new Map([[check, '0']]);
      assert.deepEqual(await sysctls.apply(desired), { changed: [], refused: [] });
      world.write(checkOfAll, '1');
      assert.equal(sysctls.isInStep(desired), false, 'the kernel now takes the setting of all devices');
      assert.deepEqual(await sysctls.apply(desired), { changed: [check], refused: [] });
      assert.equal(world.read(check), '2');
      assert.equal(sysctls.isInStep(desired), true);
      world.write(checkOfAll, '0');
      await sysctls.apply(desired);
      assert.equal(world.read(check), '0');
    });

    withWorld('another agent puts back what this one has set', async (world) => {
      await world.open().apply(new Map([[first, '1']]));
      assert.deepEqual(await world.open().restore(), { changed: [first], refused: [] });
      assert.equal(world.read(first), '0');
      assert.deepEqual(await world.open().restore(), { changed: [], refused: [] }, 'and there is nothing left to do');
    });

    withWorld('a setting that is no longer desired is put back', async (world) => {
      const sysctls = world.open();
      await sysctls.apply(
        new Map([
          [first, '1'],
          [second, '2'],
        ]),
      );
      assert.deepEqual((await sysctls.apply(new Map([[second, '2']]))).changed, [first]);
      assert.equal(world.read(first), '0');
      assert.equal(world.read(second), '2');
    });

    withWorld('what others have changed since is theirs', async (world) => {
      const sysctls = world.open();
      await sysctls.apply(new Map([[first, '1']]));
      world.write(first, '2');
      assert.deepEqual(await sysctls.restore(), { changed: [], refused: [] });
      assert.equal(world.read(first), '2');
    });

    withWorld('forwarding is never switched off again', async (world) => {
      const sysctls = world.open();
      await sysctls.apply(new Map([[forwarding, '1']]));
      await sysctls.restore();
      assert.equal(world.read(forwarding), '1');
    });

    withWorld('a path that is missing is told, and the others are set', async (world) => {
      const sysctls = world.open();
      const desired = new Map([
        [absent, '1'],
        [first, '1'],
      ]);
      const outcome = await sysctls.apply(desired);
      assert.deepEqual(outcome, { changed: [first], refused: [{ path: absent, message: 'there is no such setting' }] });
      assert.equal(sysctls.isInStep(desired), false);
    });

    withWorld('a value that the kernel does not take is told', async (world) => {
      const { changed, refused } = await world.open().apply(
        new Map([
          [first, 'loud'],
          [second, '1'],
        ]),
      );
      assert.deepEqual(changed, [second]);
      assert.deepEqual(
        refused.map(({ path }) => path),
        [first],
      );
      assert.equal(world.read(first), '0');
    });
  });
};
