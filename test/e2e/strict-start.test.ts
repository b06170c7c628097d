/**
 * feature.strictPodStart: pods that speak to the outside with their very first breath, before anybody can know about them,
 * never do so with an address that is not theirs. They are real pods of a Job, run by the kubelets of the lab.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import { EgressWorld, eip } from './egress-world.ts';

const starts = 200;
const atOnce = 24;
const nodes = ['gateway-1', 'worker-1', 'worker-2'];

/** Asks over and over until an answer comes; ends only then. */
const untilAnswered = (host: string): string =>
  `until exec 3<>/dev/udp/${host}/${ports.udp} && echo ? >&3 && read -r -t 0.05 -u 3 -N 1 _; do :; done`;

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
              `${untilAnswered(addresses.outside.ipv4)}; ${untilAnswered(addresses.outside.ipv6)}`,
            ],
          },
        ],
      },
    },
  },
};

describe('strict start', () => {
  let world: EgressWorld;
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

  test('a pod under no policy leaves with the address of its node, once it is known', async () => {
    await world.untilSource('bystander', world.node('worker-1'));
  });
});
