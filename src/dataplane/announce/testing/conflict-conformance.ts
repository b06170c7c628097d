/**
 * What a conflict listener hears, whatever it is connected to. Runs on the fake segment in conflict-listener.test.ts and between
 * two network namespaces in test/kernel/announce.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip as address } from '../../../core/testing/address.ts';
import { createConflictListener } from '../conflict-listener.ts';
import type { OpenPacketSocket } from '../packet-socket.ts';
import { type AnnounceWorld, until } from './conformance.ts';

/** The sockets of this node, besides. */
export interface ConflictWorld extends AnnounceWorld {
  readonly open: OpenPacketSocket;
}

const ELSEWHERE = '66:00:00:00:00:99';

const families = {
  IPv4: { eip: address('10.6.0.100'), others: ['10.6.0.99', '10.6.0.101', '10.6.1.100'].map((text) => address(text)) },
  IPv6: { eip: address('fd06::100'), others: ['fd06::99', 'fd06::101', 'fd06::1:0'].map((text) => address(text)) },
} as const;

/** Declares the tests. Each opens a world of its own. */
export const conflictConformance = (name: string, openWorld: () => Promise<ConflictWorld>): void => {
  for (const [family, { eip, others }] of Object.entries(families)) {
    test(`${name}: a listener hears who claims an EIP, and of all other claims nothing (${family})`, async () => {
      await using world = await openWorld();
      const listener = createConflictListener(world.open);
      listener.listen([{ ip: eip, interfaces: ['missing0', world.interfaceName] }]);
      const conflict = { ip: eip, mac: world.peer.mac, interface: world.interfaceName };
      for (const other of others) world.peer.announce(other);
      world.peer.announce(eip);
      let heard = listener.heard();
      await until('the claim was heard', () => {
        if (heard.length === 0) heard = listener.heard();
        return heard.length > 0;
      });
      assert.deepEqual(heard, [conflict]);
      listener.close();
    });

    test(`${name}: a listener hears of other EIPs from the moment that it is told of them (${family})`, async () => {
      await using world = await openWorld();
      const [next = eip] = others;
      const listener = createConflictListener(world.open);
      const listen = (...ips: readonly (typeof eip)[]) =>
        listener.listen(ips.map((ip) => ({ ip, interfaces: [world.interfaceName] })));
      listen(eip);
      listen(eip, next);
      world.peer.announce(next);
      await until('the claim was heard', () => listener.heard().some(({ ip }) => ip === next));
      listen(eip);
      listener.heard();
      world.peer.announce(next);
      world.peer.announce(eip);
      const heard: string[] = [];
      await until('the other claim was heard', () => {
        heard.push(...listener.heard().map(({ ip }) => ip));
        return heard.length > 0;
      });
      assert.deepEqual(heard, [eip]);
      listener.close();
    });

    test(`${name}: a machine that has an EIP and says nothing answers when it is asked (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.have(eip);
      const listener = createConflictListener(world.open);
      const claim = { ip: eip, interfaces: [world.interfaceName] };
      listener.listen([claim]);
      listener.ask(claim);
      await until('it has answered', () => listener.heard().some(({ mac }) => mac === world.peer.mac));
      listener.close();
    });

    test(`${name}: to ask turns no neighbour to this node, to announce does (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.believe(eip, ELSEWHERE);
      const listener = createConflictListener(world.open);
      const claim = { ip: eip, interfaces: [world.interfaceName] };
      listener.listen([claim]);
      listener.ask(claim);
      assert.equal(await world.peer.whereIs(eip), ELSEWHERE);
      listener.announce(claim);
      await until('the neighbour turned', async () => (await world.peer.whereIs(eip)) === world.mac);
      listener.close();
    });
  }
};
