/**
 * What every announcer does, whatever it is connected to. Runs on the fake segment in announcer.test.ts and between two
 * network namespaces in test/kernel/announce.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ip } from '../../../core/ip/index.ts';
import { ip as address } from '../../../core/testing/address.ts';
import type { Announcer, AnnouncerDeps } from '../announcer.ts';
import { machineTimers, manualTimers } from './timers.ts';

/** This node with one interface, and one other machine on the same segment. */
export interface AnnounceWorld extends AsyncDisposable {
  readonly interfaceName: string;
  readonly mac: string;
  readonly peer: {
    readonly mac: string;
    /** Makes the machine believe that the address is at this MAC address. */
    believe(ip: Ip, mac: string): Promise<void>;
    /** Where the machine believes the address to be. */
    whereIs(ip: Ip): Promise<string | undefined>;
    /** Gives the machine the address. */
    have(ip: Ip): Promise<void>;
    /** Lets the machine announce the address. */
    announce(ip: Ip): void;
  };
  /** The announcer of this node; the world closes it. */
  announcer(deps: Pick<AnnouncerDeps, 'clock' | 'onConflict'>): Announcer;
}

const ELSEWHERE = '66:00:00:00:00:99';
// Long enough for a busy machine. An answer ends a probe at once, so only a probe without one lasts as long.
const ANSWER_MS = 2000;
const SILENCE_MS = 25;

const families = {
  IPv4: { eip: address('10.6.0.100'), other: address('10.6.0.101') },
  IPv6: { eip: address('fd06::100'), other: address('fd06::101') },
} as const;

/** Declares the tests. Each opens a world of its own. */
export const announcerConformance = (name: string, openWorld: () => Promise<AnnounceWorld>): void => {
  for (const [family, { eip, other }] of Object.entries(families)) {
    test(`${name}: announcing a claim turns the neighbours to this node (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.believe(eip, ELSEWHERE);
      const outcome = world.announcer(firstRound).apply([{ ip: eip, interfaces: [world.interfaceName] }]);
      assert.deepEqual(outcome, { refused: [] });
      await until('the neighbour turned', async () => (await world.peer.whereIs(eip)) === world.mac);
    });

    test(`${name}: an interface that is missing does not keep others from announcing (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.believe(eip, ELSEWHERE);
      const outcome = world.announcer(firstRound).apply([
        { ip: eip, interfaces: ['missing0', world.interfaceName] },
        { ip: other, interfaces: ['missing0'] },
      ]);
      assert.deepEqual(
        outcome.refused.map(({ ip, finding }) => [ip, finding.reason]),
        [[other, 'AnnounceFailed']],
      );
      assert.match(outcome.refused[0]?.finding.sentence ?? '', new RegExp(`${other} .*missing0: no such device`));
      await until('the neighbour turned', async () => (await world.peer.whereIs(eip)) === world.mac);
    });

    test(`${name}: a probe finds the machine that has the address (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.have(eip);
      const owner = await world.announcer(alone).probe({ ip: eip, interfaces: [world.interfaceName] }, ANSWER_MS);
      assert.deepEqual(owner, { mac: world.peer.mac, interface: world.interfaceName });
    });

    test(`${name}: a probe finds nobody where nobody is, also beside a missing interface (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.have(other);
      const claim = { ip: eip, interfaces: ['missing0', world.interfaceName] };
      assert.equal(await world.announcer(alone).probe(claim, SILENCE_MS), undefined);
    });

    test(`${name}: a probe does not turn the neighbours to this node (${family})`, async () => {
      await using world = await openWorld();
      await world.peer.believe(eip, ELSEWHERE);
      await world.announcer(alone).probe({ ip: eip, interfaces: [world.interfaceName] }, SILENCE_MS);
      assert.equal(await world.peer.whereIs(eip), ELSEWHERE);
    });

    test(`${name}: another machine that claims an announced address is a conflict, told once (${family})`, async () => {
      await using world = await openWorld();
      const conflicts: unknown[] = [];
      const onConflict: AnnouncerDeps['onConflict'] = (ip, owner) => conflicts.push([ip, owner]);
      const announcer = world.announcer({ clock: machineTimers, onConflict });
      announcer.apply([{ ip: eip, interfaces: [world.interfaceName] }]);
      world.peer.announce(other);
      world.peer.announce(eip);
      world.peer.announce(eip);
      await until('the conflict was told', () => conflicts.length > 0);
      assert.deepEqual(conflicts, [[eip, { mac: world.peer.mac, interface: world.interfaceName }]]);
    });
  }
};

/** Waits on a condition, with a limit that only a fault reaches. */
export const until = async (what: string, condition: () => boolean | Promise<boolean>): Promise<void> => {
  const endsAtMs = performance.now() + 120_000;
  while (!(await condition())) {
    assert.ok(performance.now() < endsAtMs, `not in time: ${what}`);
    await delay(5);
  }
};

const alone = { clock: machineTimers, onConflict: (ip: Ip): void => assert.fail(`nobody else claims ${ip}`) };
/** On a clock that stands still only the first announcement ever leaves: what it does, it does at once. */
const firstRound = { ...alone, clock: manualTimers() };
