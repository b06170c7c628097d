/** What every Conntrack must do: run on the fake in the unit tests, and on Linux in test/kernel. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ip } from '../../../core/ip/index.ts';
import { ip } from '../../../core/testing/address.ts';
import type { Conntrack } from '../conntrack.ts';

/** A connection table for one test, empty at first. */
export interface World extends AsyncDisposable {
  readonly conntrack: Conntrack;
  /** Makes a connection of each family that carries a slot and keeps its source; the slot of no policy is undefined. */
  connect(slot: number | undefined): Promise<void>;
  /** Makes a connection that leaves with an EIP. */
  translate(eip: Ip): Promise<void>;
  /** Makes a connection that carries a slot and leaves with an EIP; `talked`: both sides have spoken, so that it can go on elsewhere. */
  redirect(slot: number, eip: Ip, state?: 'talked'): Promise<void>;
  /** Makes a connection from a source to a destination that a Service may have chosen, with a connection mark. */
  open(source: Ip, destination: Ip, mark: number): Promise<void>;
  /** How many connections there are. */
  count(): Promise<number>;
}

/** Declares the suite. */
export const conntrackConformance = (name: string, open: () => Promise<World>): void => {
  const withWorld = (title: string, body: (world: World) => Promise<void>): void => {
    test(title, async () => {
      await using world = await open();
      await body(world);
    });
  };

  describe(`conntrack: ${name}`, () => {
    withWorld('connections of the slots that are gone are forgotten, and no others', async (world) => {
      for (const slot of [1, 2, 3, 0x3fff, undefined]) await world.connect(slot);
      assert.equal(await world.count(), 10);
      assert.equal(
        await world.conntrack.forget({ slots: [2, 0x3fff], eips: [], here: [], elsewhere: [], carried: [] }),
        4,
      );
      assert.equal(await world.count(), 6);
      assert.equal(await world.conntrack.forget({ slots: [1, 3], eips: [], here: [], elsewhere: [], carried: [] }), 4);
      assert.equal(await world.count(), 2, 'what carries no slot stays');
    });

    withWorld('connections of the EIPs that are gone are forgotten, and no others', async (world) => {
      for (const text of ['192.0.2.100', '192.0.2.101', '2001:db8::100', '2001:db8::101'])
        await world.translate(ip(text));
      await world.connect(1);
      const eips = [ip('192.0.2.100'), ip('2001:db8::101'), ip('192.0.2.102')];
      assert.equal(await world.conntrack.forget({ slots: [], eips, here: [], elsewhere: [], carried: [] }), 2);
      assert.equal(await world.count(), 4);
    });

    withWorld(
      'of slots that leave here, connections with their own source are forgotten, and no others',
      async (world) => {
        await world.connect(1);
        await world.redirect(1, ip('192.0.2.100'));
        for (const text of ['192.0.2.100', '2001:db8::100']) await world.redirect(2, ip(text));
        await world.connect(3);
        assert.equal(
          await world.conntrack.forget({ slots: [], eips: [], here: [1, 2], elsewhere: [], carried: [] }),
          2,
        );
        assert.equal(await world.count(), 5, 'what leaves with its EIP stays, and slot 3 leaves elsewhere');
        assert.equal(
          await world.conntrack.forget({ slots: [], eips: [], here: [1, 2], elsewhere: [], carried: [] }),
          0,
        );
      },
    );

    withWorld(
      'of slots that leave elsewhere now, connections with an EIP are forgotten, and no others',
      async (world) => {
        for (const slot of [1, 2]) {
          await world.connect(slot);
          for (const text of ['192.0.2.100', '2001:db8::100']) await world.redirect(slot, ip(text));
        }
        await world.translate(ip('192.0.2.100'));
        assert.equal(await world.conntrack.forget({ slots: [], eips: [], here: [], elsewhere: [1], carried: [] }), 2);
        assert.equal(await world.count(), 7);
      },
    );

    withWorld(
      'of slots that leave elsewhere now, connections in which both sides have spoken go on with their own source',
      async (world) => {
        const eips = [ip('192.0.2.100'), ip('2001:db8::100')];
        for (const slot of [1, 2]) {
          for (const eip of eips) {
            await world.redirect(slot, eip);
            await world.redirect(slot, eip, 'talked');
          }
        }
        const none = { slots: [], eips: [], here: [], elsewhere: [], carried: [] };
        assert.equal(await world.conntrack.forget({ ...none, carried: [1] }), 2);
        assert.equal(await world.count(), 8, 'while the EIP is carried here, the others stay');
        assert.equal(await world.conntrack.forget({ ...none, carried: [1] }), 0);
        assert.equal(await world.conntrack.forget({ ...none, elsewhere: [1, 2] }), 6);
        assert.equal(await world.count(), 4, 'then they are forgotten');
        assert.equal(await world.conntrack.forget({ ...none, elsewhere: [1, 2] }), 0);
        assert.equal(await world.conntrack.forget({ ...none, here: [1, 2] }), 4, 'all four keep their source');
      },
    );

    withWorld('a slot without connections is no failure', async ({ conntrack }) => {
      assert.equal(await conntrack.forget({ slots: [7], eips: [], here: [], elsewhere: [], carried: [] }), 0);
      assert.equal(await conntrack.forget({ slots: [], eips: [], here: [], elsewhere: [], carried: [] }), 0);
    });

    withWorld('many slots at once', async (world) => {
      for (const slot of [1, 150, 300]) await world.connect(slot);
      const slots = Array.from({ length: 300 }, (_, index) => index + 1);
      assert.equal(await world.conntrack.forget({ slots, eips: [], here: [], elsewhere: [], carried: [] }), 6);
      assert.equal(await world.count(), 0);
    });

    withWorld(
      'connections that may not go on are cut by source, destination and mark, and no others',
      async (world) => {
        const [pod4, pod6, other] = [ip('10.244.1.1'), ip('fd44::1'), ip('10.244.1.2')];
        const [out4, out6, kept] = [ip('192.0.2.1'), ip('2001:db8::1'), ip('192.0.2.2')];
        for (const [source, destination, mark] of [
          [pod4, out4, 0],
          [pod6, out6, 0],
          [pod4, out4, 0x0f00],
          [pod4, out4, 0x26000001],
          [pod4, kept, 0],
          [other, out4, 0],
        ] as const) {
          await world.open(source, destination, mark);
        }
        const asked: Ip[] = [];
        const cutOf = (source: Ip) => {
          asked.push(source);
          if (source !== pod4 && source !== pod6) return undefined;
          return (destination: Ip, mark: number) => destination !== kept && mark !== 0x26000001;
        };
        assert.equal(await world.conntrack.cut(cutOf), 3);
        assert.equal(await world.count(), 3);
        assert.ok(asked.length >= 3);
        assert.equal(await world.conntrack.cut(cutOf), 0);
        assert.equal(await world.conntrack.cut(() => undefined), 0);
      },
    );

    withWorld('the usage says how many there are and how many there may be', async (world) => {
      await world.connect(1);
      const usage = await world.conntrack.readUsage();
      assert.equal(usage.entries, 2);
      assert.ok(usage.limit > usage.entries);
      assert.deepEqual({ insertFailed: usage.insertFailed, dropped: usage.dropped }, { insertFailed: 0, dropped: 0 });
    });
  });
};
