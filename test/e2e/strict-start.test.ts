/**
 * feature.strictPodStart: pods that speak to the outside with their very first breath, before anybody can know about them,
 * never do so with an address that is not theirs. They are real pods of a Job, run by the kubelets of the lab. Neither
 * do pods of a node that boots, if they wait for its agent, and at a gateway node that boots nothing leaves but with its EIP.
 * `SALLYPORT_STARTS=2000` starts more pods.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import { EgressWorld, eip, ways } from './egress-world.ts';
import { asking, talker } from './talker.ts';
import { tellOfLab } from './witness.ts';

const starts = Number(process.env.SALLYPORT_STARTS ?? 200);
const atOnce = 24;
const nodes = ['gateway-1', 'worker-1', 'worker-2'];

const job = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { namespace: 'shop', name: 'starters' },
  spec: {
    completions: starts,
    parallelism: atOnce,
    // A pod that the machine kills is started again.
    backoffLimit: starts,
    template: {
      metadata: { labels: { team: 'shop' } },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 0,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        containers: [
          {
            name: 'starter',
            image: 'any/image:will-do',
            command: [
              'bash',
              '-c',
              `${asking(addresses.outside.ipv4, 'answered', 0.05)}; ${asking(addresses.outside.ipv6, 'answered', 0.05)}`,
            ],
          },
        ],
      },
    },
  },
};

describe('strict start', () => {
  let world: EgressWorld;
  tellOfLab('e2e-strict');
  before(async () => {
    world = await EgressWorld.start('e2e-strict', {
      gateways: 1,
      workers: 2,
      set: ['config.feature.strictPodStart=true'],
    });
    await world.clients({ name: 'bystander', namespace: 'shop', node: 'worker-1' });
    await world.gateway('main', { ipv4: [eip(100).ipv4], ipv6: [eip(100).ipv6] });
    await world.policy('shop/all', {
      egressGatewayName: 'main',
      egressIP: eip(100),
      appliedTo: { podSelector: { matchLabels: { team: 'shop' } } },
    });
    await world.untilPolicy('shop/all', 'Programmed', 'True');
  });
  after(() => world?.stop());

  /** How many packets of unknown pods the nodes have kept from the outside. */
  const keptBack = async (): Promise<number> => {
    let sum = 0;
    for (const node of nodes) {
      const text = await world.lab.exec(node, ['nft', 'list', 'set', 'inet', 'sallyport', 'drops']);
      sum += Number(/0x0000000b counter packets (\d+)/.exec(text)?.[1] ?? 0);
    }
    return sum;
  };

  test(`${starts} pods start: all get out, and no packet of theirs has a foreign address`, async (t) => {
    await world.lab.resetCounts();
    await world.lab.apply(job);
    let done = '';
    await until(
      { what: 'all pods to be answered', limitMs: 800_000, everyMs: 1_000, explain: () => done },
      async () => {
        done = await world.lab.kubectl(['-n', 'shop', 'get', 'job', 'starters', '-o', 'jsonpath={.status.succeeded}']);
        return Number(done) === starts;
      },
    );
    assert.deepEqual(await world.strangersAsking(eip(100)), []);
    const kept = await keptBack();
    t.diagnostic(`${kept} packets of pods that were not known yet were kept back`);
    assert.ok(kept > 0, 'pods were quicker than the agents, or this test shows nothing');
  });

  /** How many packets of EIP 100 the outside has seen over each family. */
  const asked = async (): Promise<number[]> => {
    const seen = await world.lab.packets();
    return [eip(100).ipv4, eip(100).ipv6].map((ip) =>
      seen.filter(({ source }) => source === ip).reduce((sum, { packets }) => sum + packets, 0),
    );
  };

  /** Waits until both families have been heard since the counts were taken. */
  const untilHeard = async (before: readonly number[] = [0, 0]): Promise<void> => {
    let now: number[] = [];
    const wait = { what: 'packets over both families', limitMs: 120_000, everyMs: 500, explain: () => `${now}` };
    await until(wait, async () => {
      now = await asked();
      return now.every((packets, index) => packets > (before[index] ?? 0));
    });
  };

  test('a node boots: its pods that wait for its agent never leave with another address', async () => {
    await world.lab.resetCounts();
    await world.lab.apply(talker('talker', 'worker-2'));
    await untilHeard();
    await world.lab.power('reboot', 'worker-2');
    await untilHeard(await asked());
    assert.deepEqual(await world.strangersAsking(eip(100)), []);
    await world.lab.kubectl(['-n', 'shop', 'delete', 'pod', 'talker', '--timeout=180s']);
  });

  test('a gateway node boots: packets of workers that reach it meanwhile never leave with its address', async () => {
    await world.clients({ name: 'asker', namespace: 'shop', node: 'worker-1', labels: { team: 'shop' } });
    await world.untilSource('asker', eip(100));
    await world.lab.resetCounts();
    const streams = [];
    for (const way of ways) {
      const question = world.question(way);
      streams.push(await world.client('asker').stream(question, { everyMs: 5, isKept: false }));
    }
    await untilHeard();
    await world.lab.power('reboot', 'gateway-1');
    await untilHeard(await asked());
    await world.untilSource('asker', eip(100));
    for (const stream of streams) await stream.stop();
    assert.deepEqual(await world.strangersAsking(eip(100)), []);
  });

  test('a pod under no policy leaves with the address of its node, once it is known', async () => {
    await world.untilSource('bystander', world.node('worker-1'));
  });
});
