/**
 * The agent of an owner stands still for longer than its kernel holds EIPs by itself, and goes on. Somebody at the router asks all the
 * time, by ARP and neighbour discovery, who has the EIP: at no moment two nodes answer, and for a moment only nobody does.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { losses } from '../../lab/faults/losses.ts';
import { agentPattern, pause } from '../../lab/faults/processes.ts';
import { until } from '../../lab/host/wait.ts';
import { askAll } from '../../lab/observer/questions.ts';
import type { Spell } from '../../lab/observer/reigns.ts';
import { ip } from '../../src/core/testing/address.ts';
import { tellOutages } from './failover-moves.ts';
import { type FailoverWorld, watched } from './failover-world.ts';

const linkDown = losses.find(({ name }) => name === 'link down') ?? assert.fail();

const askEveryMs = 20;
/** An answer may wait in a queue of a busy machine while the next owner begins. */
const onTheWayMs = 100;
/** Promised are 500 ms, to which a busy machine adds. */
const gapLimitMs = 1_000;
const afterMs = 12_000;
/** A pod of that node waits for its agent, which has to hear first who owns; then for the limit of a question. */
const localLimitMs = 6_000;
const returnLimitMs = 6_000;
/** The lease of the kernel, less what may have passed since it was renewed. */
const leaseSeconds = 24;

/** One test for each stall, in seconds. */
export const describeStalls = (worldOf: () => FailoverWorld, stallsSeconds: readonly number[]): void => {
  describe('the agent of the owner stands still', () => {
    for (const seconds of stallsSeconds) {
      test(`for ${seconds} s: never two nodes answer for an EIP`, async (context) => {
        const world = worldOf();
        const owner = await world.owner();
        const local = { name: `beside-${seconds}`, namespace: 'shop', node: owner, labels: { team: 'shop' } };
        await world.egress.clients(local);
        await world.egress.untilSource(local.name, watched);
        const stream = await world.egress
          .client(local.name)
          .stream(world.egress.question({ transport: 'tcp', family: 4 }, { limitMs: 900 }), {
            everyMs: 100,
            isKept: false,
          });
        const stop = askAll(world.lab, [ip(watched.ipv4), ip(watched.ipv6)], askEveryMs);
        const sinceMs = Date.now();
        try {
          assert.ok((await pause(world.lab, [owner], agentPattern, seconds * 1_000)) > 0);
          const resumedMs = Date.now();
          await delay(afterMs);
          const { outages } = await stream.stop();
          const lastMs = Math.max(0, ...outages.map(({ toMs = Date.now() }) => toMs - resumedMs));
          context.diagnostic(`a pod of that node had its way out ${lastMs.toFixed(0)} ms after the agent went on`);
          assert.ok(
            lastMs <= localLimitMs,
            `a pod of that node had no way out ${lastMs.toFixed(0)} ms after the agent went on`,
          );
          await world.egress.untilSource(local.name, watched);
        } finally {
          stop();
        }
        for (const one of [watched.ipv4, watched.ipv6]) expectTurns(world, context, one, owner, sinceMs, seconds);
        assert.equal(world.observer.lostFrames, 0);
        assert.deepEqual(await world.egress.strangersAsking(watched), []);
      });
    }
  });
};

/**
 * The agent of the owner dies, its link is lost and comes back before the agent does: two faults, so that its kernel still answers for an
 * EIP that another node owns. When the agent is there, it must not announce the EIP, and the owner has to say at once that it is the one.
 */
export const describeReturn = (worldOf: () => FailoverWorld): void => {
  test('the link of a node is back before its agent: the owner is found again at once', async (context) => {
    const world = worldOf();
    const lost = await world.owner();
    const heir = lost === 'gateway-1' ? 'gateway-2' : 'gateway-1';
    let backAtMs = Date.now();
    const trial = await world.during(
      async () => {
        const sinceMs = Date.now();
        assert.ok((await world.lab.kill(lost, agentPattern)) > 0);
        await linkDown.strike(world.lab, lost);
        await until({ what: `the EIPs to leave ${lost}`, limitMs: 10_000, everyMs: 20 }, async () =>
          world.hasLeft(lost, sinceMs),
        );
        await linkDown.heal(world.lab, lost);
        backAtMs = Date.now();
      },
      async () => Date.now() > backAtMs + afterMs,
      { without: lost },
    );
    tellOutages(context, trial);
    for (const one of [watched.ipv4, watched.ipv6]) {
      const spells = world.observer.spells(one, 'claims').filter(({ toMs }) => toMs >= backAtMs);
      context.diagnostic(`${one}: ${spells.map((spell) => spellText(world, spell, backAtMs)).join('; ')}`);
    }
    for (const { way, outages } of trial.suffered) {
      // A neighbour that believes the wrong node asks again by itself after 8 s.
      for (const { ms } of outages) assert.ok(ms <= returnLimitMs, `${way} failed for ${ms} ms`);
    }
    assert.equal(await world.owner(), heir);
    assert.deepEqual(await world.egress.strangersAsking(watched), []);
  });
};

/** Nodes answered in turn, one after the other, and the right one in the end. */
const expectTurns = (
  world: FailoverWorld,
  context: TestContext,
  one: string,
  owner: string,
  sinceMs: number,
  seconds: number,
): void => {
  const spells = world.observer.spells(one, 'claims').filter(({ toMs }) => toMs >= sinceMs);
  const story = spells.map((spell) => spellText(world, spell, sinceMs)).join('; ');
  context.diagnostic(`${one}: ${story}`);
  for (const { mixedMs } of world.observer.handOvers(one, sinceMs, 'claims')) {
    assert.ok(mixedMs <= onTheWayMs, `${one} had two owners for ${mixedMs.toFixed(0)} ms: ${story}`);
  }
  const gaps = spells.map(({ fromMs }, index) => fromMs - (spells[index - 1]?.toMs ?? fromMs));
  const longestMs = Math.max(...gaps);
  context.diagnostic(`${one}: nobody answered for ${longestMs.toFixed(0)} ms`);
  assert.ok(longestMs <= gapLimitMs, `nobody answered for ${one} for ${longestMs.toFixed(0)} ms: ${story}`);
  const last = world.nodeOf(spells.at(-1)?.mac ?? 'nobody');
  assert.equal(last === owner, seconds < leaseSeconds, `${one} is on ${last} in the end: ${story}`);
};

const spellText = (world: FailoverWorld, { mac, fromMs, toMs, frames }: Spell, sinceMs: number): string =>
  `${world.nodeOf(mac)} from ${(fromMs - sinceMs).toFixed(0)} to ${(toMs - sinceMs).toFixed(0)} ms in ${frames} frames`;
