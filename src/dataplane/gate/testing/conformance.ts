/** What every gate does; the world of a test says who outside gets an answer. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../../../core/ip/index.ts';
import { nodeGroupKey } from '../../../core/ownership/node-group.ts';
import { ip } from '../../../core/testing/address.ts';
import type { Gate } from '../gate.ts';

/** A node with the two addresses below, and somebody who asks for them. */
export interface GateWorld extends AsyncDisposable {
  readonly gate: Gate;
  /** Whether the node answers for the address. */
  isAnswered(ip: Ip): Promise<boolean>;
  /** Takes all tables of the gate away, as somebody else would. */
  tamper(): Promise<void>;
}

export const gateIps = [ip('10.6.0.100'), ip('fd06::100')] as const;
const leaseMs = 60_000;
const held = gateIps.map((one, index) => ({ ip: one, epoch: index + 3, isAnswered: true }));

export const describeGate = (name: string, open: () => Promise<GateWorld>): void => {
  describe(`the gate of ${name}`, () => {
    const withWorld = (title: string, body: (world: GateWorld) => Promise<void>): void => {
      it(title, async () => {
        await using world = await open();
        await body(world);
      });
    };
    const answers = async (world: GateWorld) => [
      await world.isAnswered(gateIps[0]),
      await world.isAnswered(gateIps[1]),
    ];

    withWorld('is open while nothing is covered', async (world) => {
      await world.gate.prepare();
      assert.deepEqual(await answers(world), [true, true]);
    });

    withWorld('answers for what is covered only while it is held', async (world) => {
      const { gate } = world;
      await gate.prepare();
      assert.equal(gate.cover(gateIps), undefined);
      assert.deepEqual(await answers(world), [false, false]);
      gate.hold(held.slice(0, 1), leaseMs);
      assert.deepEqual(await answers(world), [true, false]);
      gate.hold(held.slice(1), leaseMs);
      assert.deepEqual(await answers(world), [false, true]);
      gate.hold([], leaseMs);
      assert.deepEqual(await answers(world), [false, false]);
      gate.cover([]);
      assert.deepEqual(await answers(world), [true, true]);
    });

    withWorld('takes what comes and what goes, one by one', async (world) => {
      const { gate } = world;
      const [first, second] = gateIps;
      await gate.prepare();
      gate.cover([first]);
      assert.deepEqual(await answers(world), [false, true]);
      assert.equal(gate.cover([first, second]), undefined);
      assert.deepEqual(await answers(world), [false, false]);
      gate.hold(held.slice(0, 1), leaseMs);
      gate.hold(held.slice(0, 1), leaseMs);
      assert.equal(gate.hold(held, leaseMs), undefined);
      assert.deepEqual(await answers(world), [true, true]);
      assert.equal((await gate.read())?.length, 2);
      gate.hold([], leaseMs);
      assert.equal(gate.cover([second]), undefined);
      assert.deepEqual(await answers(world), [true, false]);
    });

    withWorld('takes one EIP out and leaves the others their lease', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      gate.hold(held, leaseMs);
      assert.equal(gate.hold(held.slice(0, 1), leaseMs), undefined);
      assert.deepEqual(await answers(world), [true, false]);
      assert.equal(
        gate.hold(
          held.map((one) => ({ ...one, epoch: 9 })),
          leaseMs,
        ),
        undefined,
      );
      assert.deepEqual(await answers(world), [true, true]);
      assert.deepEqual(
        (await gate.read())?.map(({ epoch }) => epoch),
        [9, 9],
      );
      assert.equal(
        gate.hold(
          held.map((one) => ({ ...one, isAnswered: false })),
          leaseMs,
        ),
        undefined,
      );
      assert.deepEqual(await answers(world), [false, false]);
    });

    withWorld('prolongs a part of what it holds, and nothing that it does not hold', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      gate.hold(held, leaseMs);
      assert.equal(gate.prolong(held.slice(0, 1), 10 * leaseMs), undefined);
      const leftMs = new Map((await gate.read())?.map((one) => [one.ip, one.leftMs]));
      assert.ok((leftMs.get(gateIps[0]) ?? 0) > 9 * leaseMs);
      assert.ok((leftMs.get(gateIps[1]) ?? Infinity) <= leaseMs);
      assert.deepEqual(await answers(world), [true, true]);
      gate.hold(held.slice(0, 1), leaseMs);
      assert.notEqual(gate.prolong(held, leaseMs), undefined);
      assert.deepEqual(await answers(world), [true, false]);
    });

    withWorld('is told everything again after its tables were made anew', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps.slice(0, 1));
      await world.tamper();
      await gate.prepare();
      assert.equal(gate.cover(gateIps), undefined);
      assert.deepEqual(await answers(world), [false, false]);
    });

    withWorld('does not answer for what is only carried', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      gate.hold(
        held.map((one) => ({ ...one, isAnswered: false })),
        leaseMs,
      );
      assert.deepEqual(await answers(world), [false, false]);
      assert.deepEqual(await gate.read(), []);
    });

    withWorld('tells what is held and in which epoch, and stays as it is when it is made again', async (world) => {
      const { gate } = world;
      assert.equal(await gate.read(), undefined);
      await gate.prepare();
      assert.deepEqual(await gate.read(), []);
      gate.cover(gateIps);
      gate.hold(held, leaseMs);
      await gate.prepare();
      const inKernel = await gate.read();
      assert.deepEqual(
        inKernel?.map(({ ip: one, epoch }) => ({ ip: one, epoch })),
        held.map(({ ip: one, epoch }) => ({ ip: one, epoch })),
      );
      for (const { leftMs } of inKernel ?? [])
        assert.ok(leftMs > leaseMs / 2 && leftMs <= leaseMs, `${leftMs} ms left`);
      assert.deepEqual(await answers(world), [true, true]);
    });

    withWorld('keeps a node group, which has no address, for a restart', async (world) => {
      const { gate } = world;
      await gate.prepare();
      const group = { ip: nodeGroupKey({ gateway: 'main', node: 'gateway-1' }), epoch: 7 };
      gate.hold([{ ...group, isAnswered: true }], leaseMs);
      const inKernel = await gate.read();
      assert.deepEqual(
        inKernel?.map(({ ip: one, epoch }) => ({ ip: one, epoch })),
        [group],
      );
    });

    withWorld('has room for thousands of EIPs', async (world) => {
      const { gate } = world;
      const more = Array.from({ length: 5_000 }, (_, place) => [
        ip(`10.7.${place >> 8}.${place & 255}`),
        ip(`fd07::${(place + 1).toString(16)}`),
      ]).flat();
      const all = [...more, ...gateIps];
      await gate.prepare();
      assert.equal(gate.cover(all), undefined);
      assert.deepEqual(await answers(world), [false, false]);
      const holds = all.map((one) => ({ ip: one, epoch: 4_000_000_000, isAnswered: true }));
      assert.equal(gate.hold(holds, leaseMs), undefined);
      assert.deepEqual(await answers(world), [true, true]);
      assert.equal((await gate.read())?.length, all.length);
    });

    withWorld('shuts by itself when the lease is over', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      gate.hold(held, 1);
      for (const one of gateIps) while (await world.isAnswered(one)) assert.equal(gate.cover(gateIps), undefined);
      assert.deepEqual(await gate.read(), []);
    });

    withWorld('says so when its tables are gone, and can be made again', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      await world.tamper();
      assert.match(gate.hold(held, leaseMs) ?? '', /no such/);
      assert.match(gate.cover(gateIps) ?? '', /no such/);
      await gate.prepare();
      assert.equal(gate.cover(gateIps), undefined);
      gate.hold(held, leaseMs);
      assert.deepEqual(await answers(world), [true, true]);
    });

    withWorld('goes, and may be told to twice', async (world) => {
      const { gate } = world;
      await gate.prepare();
      gate.cover(gateIps);
      await gate.remove();
      await gate.remove();
      assert.deepEqual(await answers(world), [true, true]);
      assert.equal(await gate.read(), undefined);
    });
  });
};
