/**
 * Processors are short on all nodes: eight endless loops on each core. Nothing moves for that but once at the most, nobody has two owners,
 * nothing leaves with another address; the nodes say that they notice losses later; and a loss of power in that state is noticed all the same.
 * `SALLYPORT_MINUTES=10` keeps the cores busy for ten minutes.
 */
import assert from 'node:assert/strict';
import { loadavg } from 'node:os';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { overload } from '../../lab/faults/processes.ts';
import { askAll } from '../../lab/observer/questions.ts';
import { ip } from '../../src/core/testing/address.ts';
import { tellOutages } from './failover-moves.ts';
import { FailoverWorld, policyKey, type Trial, watched } from './failover-world.ts';
import { tellOfLab } from './witness.ts';

const busyMs = Number(process.env.SALLYPORT_MINUTES ?? 1) * 60_000;
const loopsPerCore = 8;
const eips = [watched.ipv4, watched.ipv6];
const askEveryMs = 50;
/** An answer waits in a queue while the next owner begins, for longer where the one that answers has no processor. */
const onTheWayMs = 500;
/** As the outside sees the next owner; questions of pods wait for processors besides. */
const lossLimitMs = 2_000;
const outageLimitMs = 4_000;

describe('failover where processors are short', () => {
  let world: FailoverWorld;
  tellOfLab('e2e-failover-starved');
  before(async () => {
    world = await FailoverWorld.start('e2e-failover-starved');
  });
  after(() => world?.stop());

  const expectOneOwner = (sinceMs: number): void => {
    for (const one of eips) {
      for (const { mixedMs } of world.observer.handOvers(one, sinceMs, 'claims')) {
        assert.ok(mixedMs <= onTheWayMs, `${one} had two owners for ${mixedMs.toFixed(0)} ms`);
      }
    }
  };
  const tell = (context: TestContext, trial: Trial): void => {
    tellOutages(context, trial);
    const moves = trial.handOvers.map(({ to, afterMs, mixedMs }) => `to ${to} after ${afterMs} ms (${mixedMs})`);
    context.diagnostic(`load ${loadavg()[0]?.toFixed(1)}; moves: ${moves.join(', ') || 'none'}`);
  };
  const slowed = async (): Promise<string> => {
    const path =
      'jsonpath={range .items[*]}{.metadata.name} {.status.report.detectionMilliseconds} {.status.conditions[?(@.type=="Slowed")].reason}{"\\n"}{end}';
    return world.lab.kubectl(['get', 'egresstunnels', '-o', path]);
  };

  test('nothing moves but once at the most, and a loss of power is noticed', async (context) => {
    const stop = askAll(world.lab, [ip(watched.ipv4), ip(watched.ipv6)], askEveryMs);
    const sinceMs = Date.now();
    const relax = overload(world.lab, loopsPerCore);
    try {
      const busy = await world.during(
        () => delay(busyMs),
        () => true,
      );
      tell(context, busy);
      const [namespace = '', name = ''] = policyKey.split('/');
      const epoch = ['get', 'egresspolicy', name, '-n', namespace, '-o', 'jsonpath={.status.epoch}'];
      context.diagnostic(`epoch ${await world.lab.kubectl(epoch)}\n${await slowed()}`);
      for (const one of eips) {
        const moves = world.observer.handOvers(one, sinceMs, 'claims');
        assert.ok(moves.length <= 1, `${one} moved ${moves.length} times`);
      }
      expectOneOwner(sinceMs);
      assert.match(await slowed(), / DetectionSlowed$/m);

      const lost = await world.owner();
      const offAtMs = Date.now();
      const loss = await world.during(
        () => world.lab.power('off', lost),
        (atMs) => world.hasLeft(lost, atMs),
        { without: lost },
      );
      tell(context, loss);
      for (const { afterMs } of loss.handOvers) assert.ok(afterMs <= lossLimitMs, `taken over after ${afterMs} ms`);
      for (const { way, outageMs } of loss.suffered) {
        assert.ok(outageMs <= outageLimitMs, `${way} failed for ${outageMs} ms`);
      }
      expectOneOwner(offAtMs);
      await relax();
      await world.lab.power('on', lost);
      await world.untilBack(lost);
    } finally {
      stop();
      await relax();
    }
    assert.deepEqual(await world.egress.strangersAsking(watched), []);
  });
});
