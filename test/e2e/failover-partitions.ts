/**
 * Ways that are dead in part: who hears whom no more, one way or both. Whatever happens, at most one node has the EIP, it does not
 * go to and fro, and all is well again by itself when the way is back.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { around, bothWays, type Cut, setCuts } from '../../lab/faults/cuts.ts';
import { controlPlane } from '../../lab/net/fabric.ts';
import { type FailoverWorld, watched } from './failover-world.ts';

/** Who is who when it happens. */
interface Roles {
  readonly owner: string;
  readonly peer: string;
  readonly workers: readonly string[];
}

interface Partition {
  readonly name: string;
  readonly cuts: (roles: Roles) => readonly Cut[];
  /**
   * `stays`: nothing moves, no request fails. `serves`: no request fails, but it may move. `moves`: the peer has it.
   * `either`: it may move or not, and requests may fail.
   */
  readonly outcome: 'stays' | 'serves' | 'moves' | 'either';
}

const everybody = ({ owner, peer, workers }: Roles): string[] => [peer, ...workers].filter((node) => node !== owner);
const oneWay = (from: readonly string[], to: readonly string[], what: Cut['what']): Cut[] =>
  from.flatMap((one) => to.map((other) => ({ from: one, to: other, what })));

const partitions: readonly Partition[] = [
  {
    name: 'owner and peer do not reach each other',
    cuts: ({ owner, peer }) => bothWays(owner, peer, 'everything'),
    outcome: 'stays',
  },
  {
    name: 'the peer does not hear the owner',
    cuts: ({ owner, peer }) => oneWay([owner], [peer], 'tunnel'),
    outcome: 'stays',
  },
  {
    name: 'the owner does not hear the peer',
    cuts: ({ owner, peer }) => oneWay([peer], [owner], 'tunnel'),
    outcome: 'stays',
  },
  {
    // After a while Kubernetes takes the node for lost, and the controller asks for another; the owner is there to hand over.
    name: 'the owner does not reach the API server',
    cuts: ({ owner }) => bothWays(owner, controlPlane.name, 'everything'),
    outcome: 'serves',
  },
  {
    name: 'no node but the owner reaches the API server',
    cuts: (roles) => everybody(roles).flatMap((node) => bothWays(node, controlPlane.name, 'everything')),
    outcome: 'stays',
  },
  {
    // The owner has a majority with its peer, so it is the owner; that workers do not reach it is another matter.
    name: 'owner and workers do not reach each other',
    cuts: ({ owner, workers }) => around(owner, workers, 'everything'),
    outcome: 'either',
  },
  {
    name: 'nobody hears the owner',
    cuts: (roles) => oneWay([roles.owner], everybody(roles), 'tunnel'),
    outcome: 'moves',
  },
  {
    name: 'the owner hears nobody',
    cuts: (roles) => oneWay(everybody(roles), [roles.owner], 'tunnel'),
    outcome: 'moves',
  },
  {
    name: 'owner and all other nodes do not reach each other, but all reach the router',
    cuts: (roles) => around(roles.owner, [...everybody(roles), controlPlane.name], 'everything'),
    outcome: 'moves',
  },
];

const settleMs = 1_000;
const watchMs = 2_500;
const eips = [watched.ipv4, watched.ipv6];

/** Describes one test for each partition. */
export function describePartitions(worldOf: () => FailoverWorld): void {
  describe('partitions', () => {
    for (const { name, cuts, outcome } of partitions) {
      test(`${name}: one owner, no flapping, well again by itself`, async (context) => {
        const world = worldOf();
        const isFixed = outcome === 'stays' || outcome === 'moves';
        const owner = await world.owner();
        const peer = owner === 'gateway-1' ? 'gateway-2' : 'gateway-1';
        const promised = outcome === 'moves' ? peer : owner;
        const struck = cuts({ owner, peer, workers: ['worker-1', 'worker-2'] });
        // A pod of the peer needs the way to the owner.
        const isPeerCut = struck.some(({ from, to }) => [from, to].every((node) => node === owner || node === peer));
        await world.meetGatewayPods();
        const { failed, stop } = await world.startAsking(isPeerCut ? [owner] : [owner, peer]);
        const cutAtMs = Date.now();
        let healedAtMs = cutAtMs;
        let failures = 0;
        try {
          await setCuts(world.lab, struck);
          // That nothing happens can only be seen by looking for a while.
          await delay(settleMs + watchMs);
          healedAtMs = Date.now();
          failures = await failed();
        } finally {
          await setCuts(world.lab, []);
        }
        expectOneOwner(world, cutAtMs, healedAtMs);
        if (isFixed) assert.deepEqual(usersOf(world, cutAtMs + settleMs, healedAtMs), [promised, promised]);
        if (outcome === 'stays' || outcome === 'serves') assert.equal(failures, 0, 'failed requests');
        await world.egress.untilSource('three', watched);
        assert.deepEqual(await world.meetGatewayPods(), ['gateway-1', 'gateway-2']);
        await world.untilBack(owner);
        await delay(settleMs);
        expectOneOwner(world, healedAtMs);
        if (isFixed) assert.equal(await world.owner(), promised, 'nothing moves back');
        await stop();
        const moves = eips.flatMap((ip) => handOverText(world, ip, cutAtMs));
        context.diagnostic(`${failures} requests failed; ${moves.join(', ') || 'nothing moved'}`);
        assert.deepEqual(await world.egress.strangersAsking(watched), []);
      });
    }
  });
}

/** At most one hand-over of each EIP, over within a second. */
function expectOneOwner(world: FailoverWorld, fromMs: number, toMs = Number.POSITIVE_INFINITY): void {
  for (const ip of eips) {
    const handOvers = world.observer.handOvers(ip, fromMs).filter(({ atMs }) => atMs < toMs);
    assert.ok(handOvers.length <= 1, `${ip} went to and fro: ${JSON.stringify(handOvers)}`);
    for (const { mixedMs } of handOvers) assert.ok(mixedMs <= settleMs, `${ip} had two owners for ${mixedMs} ms`);
  }
  assert.equal(world.observer.lostFrames, 0);
}

/** The nodes that used the EIPs between two times, of each EIP: one and the same, or there are two owners. */
const usersOf = (world: FailoverWorld, fromMs: number, toMs: number): string[] =>
  eips.map((ip) =>
    world.observer
      .macs(ip, fromMs, toMs)
      .map((mac) => world.nodeOf(mac))
      .join(' and '),
  );

const handOverText = (world: FailoverWorld, ip: string, sinceMs: number): string[] =>
  world.observer
    .handOvers(ip, sinceMs)
    .map(
      ({ to, atMs, mixedMs }) =>
        `${ip} to ${world.nodeOf(to)} after ${Math.round(atMs - sinceMs)} ms (${Math.round(mixedMs)} ms mixed)`,
    );
