/** What every Connections must do: run on the fake in the unit tests, and on Linux in test/kernel. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { replyMark, slotMark } from '../../../core/node/numbers.ts';
import { ip } from '../../../core/testing/address.ts';
import { addressBytes, type Connection, type ConnectionKey, keyOf, type Protocol } from '../connection.ts';
import type { Connections } from '../connections.ts';
import { areSameConnections } from './fake-connections.ts';

/** A connection table for one test, empty at first. */
export interface ConnectionsWorld extends AsyncDisposable {
  readonly connections: Connections;
  /** Somebody else makes a connection and both sides speak; without an EIP it keeps its source. */
  talk(connection: Connection, eip?: 'kept'): Promise<void>;
  /** Somebody else deletes it. */
  end(key: ConnectionKey): Promise<void>;
  /** Both sides say good-bye: it is over, and remembered for a while. */
  part(key: ConnectionKey): Promise<void>;
  /** The mark of a connection and the source that the outside sees, as text; undefined if there is none of that name. */
  read(key: ConnectionKey): Promise<{ readonly mark: number; readonly leavesAs: string } | undefined>;
}

export const sample = {
  4: { pod: ip('10.244.1.2'), outside: ip('192.0.2.1'), eip: ip('10.9.0.100') },
  6: { pod: ip('fd44:1::2'), outside: ip('2001:db8::1'), eip: ip('fd09::e:100') },
} as const;

export interface SampleOptions {
  readonly family?: 4 | 6;
  readonly protocol?: Protocol;
  readonly port?: number;
  readonly eipPort?: number;
  readonly mark?: number;
}

/** A connection from the pod to the outside. */
export const sampleConnection = (options: SampleOptions = {}): Connection => {
  const { family = 4, protocol = 'tcp', port = 4000, eipPort = port, mark = replyMark(17) } = options;
  const { pod, outside, eip } = sample[family];
  const parts = { protocol, source: pod, sourcePort: port, destination: outside, destinationPort: 80 };
  return { key: keyOf(parts), eip: addressBytes(eip), eipPort, mark };
};

const listed = (connections: Connections): Connection[] => {
  const found: Connection[] = [];
  connections.list((connection) => found.push(connection));
  return found.toSorted((a, b) => (a.key < b.key ? -1 : 1));
};

/** Declares the suite. */
export const connectionsConformance = (name: string, open: () => Promise<ConnectionsWorld>): void => {
  const withWorld = (title: string, body: (world: ConnectionsWorld) => Promise<void>): void => {
    test(title, async () => {
      await using world = await open();
      await body(world);
    });
  };

  describe(`connections: ${name}`, () => {
    withWorld('what is put is there, translated and marked, of both protocols and families', async (world) => {
      const wanted = ([4, 6] as const).flatMap((family) =>
        (['tcp', 'udp'] as const).map((protocol) => sampleConnection({ family, protocol, eipPort: 5000 })),
      );
      assert.deepEqual(world.connections.put(wanted), { written: 4, refused: 0 });
      for (const [index, { key }] of wanted.entries()) {
        const leavesAs = index < 2 ? '10.9.0.100 5000' : 'fd09::e:100 5000';
        assert.deepEqual(await world.read(key), { mark: replyMark(17), leavesAs });
      }
      assert.deepEqual(
        listed(world.connections),
        wanted.toSorted((a, b) => (a.key < b.key ? -1 : 1)),
      );
    });

    withWorld('what is put twice is there once', async (world) => {
      const wanted = [sampleConnection(), sampleConnection({ port: 4001 })];
      world.connections.put(wanted);
      assert.deepEqual(world.connections.put(wanted), { written: 2, refused: 0 });
      assert.equal(listed(world.connections).length, 2);
    });

    withWorld('many at once', async (world) => {
      const wanted = Array.from({ length: 1000 }, (_, index) => sampleConnection({ port: 1024 + index }));
      assert.deepEqual(world.connections.put(wanted), { written: 1000, refused: 0 });
      assert.deepEqual(listed(world.connections), wanted);
    });

    withWorld('a connection of a pod of this node is translated from now on and keeps its slot', async (world) => {
      const before = sampleConnection({ mark: slotMark(5) });
      await world.talk(before, 'kept');
      assert.deepEqual(listed(world.connections), [], 'it leaves through another node');
      assert.deepEqual(world.connections.put([sampleConnection({ eipPort: 5000 })]), { written: 1, refused: 0 });
      assert.deepEqual(await world.read(before.key), { mark: slotMark(5), leavesAs: '10.9.0.100 5000' });
    });

    withWorld(
      'of a pod of this node only what is there is exchanged: what is not is made by its next packet',
      async (world) => {
        for (const family of [4, 6] as const) await world.talk(sampleConnection({ family, mark: slotMark(5) }), 'kept');
        const wanted = ([4, 6] as const).flatMap((family) => [
          sampleConnection({ family, eipPort: 5000 }),
          sampleConnection({ family, port: 4001 }),
        ]);
        assert.deepEqual(world.connections.put(wanted, replyMark(17)), { written: 4, refused: 0 });
        const [first, second, third, fourth] = await Promise.all(wanted.map(({ key }) => world.read(key)));
        assert.deepEqual(first, { mark: slotMark(5), leavesAs: '10.9.0.100 5000' });
        assert.deepEqual(third, { mark: slotMark(5), leavesAs: 'fd09::e:100 5000' });
        assert.deepEqual([second, fourth], [undefined, undefined]);
      },
    );

    withWorld('a connection that was made too early with another port gets the right one', async (world) => {
      const early = sampleConnection({ eipPort: 4000 });
      await world.talk(early);
      world.connections.put([sampleConnection({ eipPort: 5000 })]);
      assert.deepEqual(await world.read(early.key), { mark: early.mark, leavesAs: '10.9.0.100 5000' });
    });

    withWorld('a port of the EIP is taken from a connection that got it in the wrong moment', async (world) => {
      for (const family of [4, 6] as const) {
        await world.talk(sampleConnection({ family, port: 4000 }));
        await world.talk(sampleConnection({ family, port: 4005 }));
      }
      const wanted = ([4, 6] as const).flatMap((family) => [
        sampleConnection({ family, port: 4001, eipPort: 4000 }),
        sampleConnection({ family, port: 4002 }),
      ]);
      assert.deepEqual(world.connections.put(wanted), { written: 4, refused: 0 });
      const others = ([4, 6] as const).map((family) => sampleConnection({ family, port: 4005 }));
      assert.ok(areSameConnections(listed(world.connections), [...wanted, ...others]));
    });

    withWorld('a connection that is over here and was told of as open is open', async (world) => {
      const wanted = ([4, 6] as const).map((family) => sampleConnection({ family }));
      for (const one of wanted) await world.talk(one);
      for (const { key } of wanted) await world.part(key);
      assert.deepEqual(listed(world.connections), []);
      assert.deepEqual(world.connections.put(wanted), { written: 2, refused: 0 });
      assert.ok(areSameConnections(listed(world.connections), wanted));
    });

    withWorld('of an EIP, what is over is forgotten, and nothing else', async (world) => {
      const parted = ([4, 6] as const).map((family) => sampleConnection({ family }));
      const open = sampleConnection({ port: 4001 });
      for (const one of [...parted, open]) await world.talk(one);
      for (const { key } of parted) await world.part(key);
      const [first, second] = parted;
      assert.ok(first !== undefined && second !== undefined);
      assert.equal(world.connections.forgetOver(new Set([first.eip])), 1);
      assert.equal(await world.read(first.key), undefined);
      assert.notEqual(await world.read(second.key), undefined, 'that of another EIP');
      assert.deepEqual(listed(world.connections), [open]);
      assert.equal(world.connections.forgetOver(new Set([first.eip])), 0);
    });

    withWorld('changes are told in order, of connections that leave with an EIP and of no others', async (world) => {
      const feed = world.connections.watch();
      const [tcp, udp] = [sampleConnection(), sampleConnection({ family: 6, protocol: 'udp', eipPort: 5000 })];
      await world.talk(tcp);
      await world.talk(sampleConnection({ port: 4001, mark: 0 }));
      await world.talk(sampleConnection({ port: 4002, mark: slotMark(5) }), 'kept');
      await world.talk(udp);
      await world.end(tcp.key);
      const heard: unknown[] = [];
      assert.equal(
        feed.receive(100, (change) => heard.push(change)),
        'all',
      );
      assert.deepEqual(heard, [
        { kind: 'open', connection: tcp },
        { kind: 'open', connection: udp },
        { kind: 'closed', connection: tcp },
      ]);
      assert.equal(
        feed.receive(100, (change) => heard.push(change)),
        'all',
      );
      assert.equal(heard.length, 3);
      feed.close();
      feed.close();
    });

    withWorld('no more changes are told than asked for, and the rest later', async (world) => {
      const feed = world.connections.watch();
      for (const port of [4000, 4001, 4002]) await world.talk(sampleConnection({ port }));
      const heard: ConnectionKey[] = [];
      const take = (limit: number) => feed.receive(limit, ({ connection }) => heard.push(connection.key));
      assert.equal(take(2), 'more');
      assert.equal(heard.length, 2);
      assert.equal(take(2), 'all');
      assert.deepEqual(
        heard,
        [4000, 4001, 4002].map((port) => sampleConnection({ port }).key),
      );
      feed.close();
    });
  });
};
