/**
 * The router is silent in one family, for one gateway node or for several. The pair goes to a node that still has both families, if there
 * is one; where none is better off, nothing moves.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { bothWays, type Cut, setCuts } from '../../lab/faults/cuts.ts';
import { silences } from '../../lab/faults/losses.ts';
import { until } from '../../lab/host/wait.ts';
import { outside } from '../../lab/net/fabric.ts';
import { tellOutages } from './failover-moves.ts';
import { type FailoverWorld, told, watched } from './failover-world.ts';

const gateways = ['gateway-1', 'gateway-2'];
/** 300 ms are promised; limits catch what hangs. */
const limitMs = 3_000;
/** That nothing happens can only be seen by looking for a while. */
const watchMs = 3_000;
/** Describes what happens when a router is silent in one family. */
export function describeUplinks(worldOf: () => FailoverWorld): void {
  describe('the router is silent in one family', () => {
    for (const { name, strike, heal } of silences) {
      test(`${name} for the owner: the pair goes to the other node, and does not come back`, async (context) => {
        const world = worldOf();
        const lost = await world.owner();
        const heir = gateways.find((node) => node !== lost) ?? assert.fail();
        const family = name.endsWith('ipv4') ? 'IPv4' : 'IPv6';
        try {
          const trial = await world.during(
            () => strike(world.lab, lost),
            (sinceMs) => world.hasLeft(lost, sinceMs),
          );
          tellOutages(context, trial);
          assert.deepEqual(told(trial).handOvers, [heir, heir]);
          for (const { way, outageMs } of trial.suffered) {
            assert.ok(outageMs <= limitMs, `${way} failed for ${outageMs} ms`);
          }
          await untilUplink(world, lost, 'True');
          const why = new RegExp(`does not reach the outside in ${family}: router \\S+ on eth0 is silent`);
          assert.match(await uplinkOf(world, lost), why);
          assert.equal(await uplinkOf(world, heir), '');
        } finally {
          await heal(world.lab, lost);
        }
        await untilUplink(world, lost, '');
        assert.equal(await world.owner(), heir);
        assert.deepEqual(await world.egress.strangersAsking(watched), []);
      });
    }

    test('for both gateway nodes: nothing moves, not when it is back either', () =>
      expectStill(worldOf(), 'ipv6', 'ipv6'));

    test('in IPv4 for the one and in IPv6 for the other: the pair does not go to and fro', () =>
      expectStill(worldOf(), 'ipv4', 'ipv6'));
  });
}

/**
 * Cuts the other node off first and heals it last: which of two sees the router go first is chance, and on a busy machine it may be
 * more than a silence before the second one does.
 */
const expectStill = async (world: FailoverWorld, ownerLoses: Cut['what'], peerLoses: Cut['what']): Promise<void> => {
  const owner = await world.owner();
  const peer = gateways.find((node) => node !== owner) ?? assert.fail();
  const [own, others] = [bothWays(owner, outside.name, ownerLoses), bothWays(peer, outside.name, peerLoses)];
  const sinceMs = Date.now();
  try {
    await setCuts(world.lab, others);
    await untilUplink(world, peer, 'True');
    await setCuts(world.lab, [...own, ...others]);
    await untilUplink(world, owner, 'True');
    await delay(watchMs);
    await setCuts(world.lab, others);
    await untilUplink(world, owner, '');
  } finally {
    await setCuts(world.lab, []);
  }
  await untilUplink(world, peer, '');
  assert.equal(await world.owner(), owner);
  assert.deepEqual(world.handOversSince(sinceMs), []);
  assert.deepEqual(await world.egress.strangersAsking(watched), []);
};

/** Waits until the condition of a node has this status; empty for none. */
const untilUplink = (world: FailoverWorld, node: string, status: string): Promise<true> =>
  until({ what: `condition UplinkLost ${status} of ${node}`, limitMs: 30_000, everyMs: 200 }, async () => {
    const [now = ''] = (await uplinkOf(world, node)).split(' ');
    return now === status;
  });

/** Status, reason and message of the condition of a node; empty without one. */
const uplinkOf = (world: FailoverWorld, node: string): Promise<string> => {
  const condition = '{range .status.conditions[?(@.type=="UplinkLost")]}{.status} {.reason} {.message}{end}';
  return world.lab.kubectl(['get', 'egresstunnel', node, '-o', `jsonpath=${condition}`]);
};
