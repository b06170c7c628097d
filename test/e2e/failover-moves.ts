/**
 * An EIP moves because somebody wants it to: make before break. Nobody outside or in a pod notices: no connection is cut
 * off, and no question fails.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { run } from '../../lab/host/command.ts';
import { until } from '../../lab/host/wait.ts';
import { type FailoverWorld, type Trial, told, watched } from './failover-world.ts';

const egctl = join(import.meta.dirname, '..', '..', 'bin', 'egctl');

/** What somebody does to move the EIP, and how it is undone, which moves nothing back. */
interface Move {
  readonly name: string;
  readonly act: (world: FailoverWorld, from: string, to: string) => Promise<void>;
  readonly undo?: (world: FailoverWorld, from: string) => Promise<void>;
}

/**
 * Asks as people do, again when it is refused: some seconds after the API server was away, Kubernetes calls nodes not ready, and
 * nothing can be moved to them until that is over.
 */
const ask = async (world: FailoverWorld, ...args: readonly string[]): Promise<void> => {
  let said = '';
  const wait = { what: `egctl ${args.join(' ')}`, limitMs: 60_000, everyMs: 500, explain: () => said };
  await until(wait, async () => {
    const { code, stdout, stderr } = await run([egctl, ...args], { env: { KUBECONFIG: world.lab.kubeconfig } });
    said = `${stdout}${stderr}`;
    return code === 0;
  });
};

const moves: readonly Move[] = [
  {
    name: 'egctl vip move',
    act: (world, _, to) =>
      ask(world, 'vip', 'move', '--egressGatewayName', 'main', '--vip', watched.ipv4, '--targetNode', to),
  },
  {
    name: 'egctl drain and undrain',
    act: (world, from) => ask(world, 'drain', from),
    undo: (world, from) => ask(world, 'undrain', from),
  },
  {
    name: 'a selector edited and put back',
    act: (world, _, to) => world.select({ 'kubernetes.io/hostname': to }),
    undo: (world) => world.select({ egress: 'true' }),
  },
  {
    name: 'a label of the node taken away and put back',
    act: (world, from) => world.label(from, 'egress-'),
    undo: (world, from) => world.label(from, 'egress=true'),
  },
];

/** The moves by plan, one after the other; `rounds` times. */
export const describeMoves = (worldOf: () => FailoverWorld, rounds = 1): void => {
  describe('a move by plan', () => {
    for (let round = 1; round <= rounds; round += 1) {
      for (const { name, act, undo } of moves) {
        test(`${name}: no question fails, no connection is cut off${round > 1 ? ` (${round})` : ''}`, async (context) => {
          const world = worldOf();
          const from = await world.owner();
          const to = from === 'gateway-1' ? 'gateway-2' : 'gateway-1';
          const trial = await world.during(
            async () => {
              const sinceMs = Date.now();
              await act(world, from, to);
              const wait = { what: `the EIPs to leave ${from}`, limitMs: 60_000, everyMs: 20 };
              await until(wait, async () => world.hasLeft(from, sinceMs));
              await undo?.(world, from);
            },
            () => true,
          );
          tellOutages(context, trial);
          const { failed, lost, handOvers } = told(trial);
          assert.deepEqual({ failed, lost, handOvers }, { failed: 0, lost: [], handOvers: [to, to] });
          assert.deepEqual(await world.egress.strangersAsking(watched), []);
          assert.equal(world.observer.lostFrames, 0);
        });
      }
    }
  });
};

/** Says for the record how long new connections failed. */
export function tellOutages(context: TestContext, { suffered }: Trial): void {
  for (const { way, outages, failed } of suffered) {
    const each = outages.map(({ afterMs, ms }) => `${ms} ms after ${afterMs} ms`);
    context.diagnostic(`${way}: ${failed} new connections failed: ${each.join(', ') || 'none'}`);
  }
}
