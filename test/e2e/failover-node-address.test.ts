/**
 * Policies with `useNodeIP` when their gateway node is lost: another one serves them with its own address, as fast as EIPs
 * change hands and without an API server. For pods on a worker and on both gateway nodes, over TCP and UDP, IPv4 and IPv6.
 */
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { losses } from '../../lab/faults/losses.ts';
import { until } from '../../lab/host/wait.ts';
import type { RunningStream } from '../../lab/inside/pod-client.ts';
import { ways } from './egress-world.ts';
import { FailoverWorld, watched } from './failover-world.ts';
import { tellOfLab } from './witness.ts';

const gateways = ['gateway-1', 'gateway-2'];
const nodes = ['worker-1', ...gateways];
const policyKey = 'node/all';
const clientOn = (node: string): string => `node-${node}`;
// What is promised is judged over many losses on a quiet machine. This is one, beside others; the controller takes 30 s and more.
const longestMs = 3_000;

interface Asking {
  readonly name: string;
  readonly stream: RunningStream;
}

describe('failover of policies with the address of their gateway node', () => {
  let world: FailoverWorld;
  tellOfLab('e2e-failover-node');
  before(async () => {
    world = await FailoverWorld.start('e2e-failover-node');
    const { egress } = world;
    const labels = { team: 'node' };
    await egress.clients(...nodes.map((node) => ({ name: clientOn(node), namespace: 'node', node, labels })));
    await egress.policy(policyKey, {
      egressGatewayName: 'main',
      egressIP: { useNodeIP: true },
      appliedTo: { podSelector: { matchLabels: labels } },
    });
    await egress.untilPolicy(policyKey, 'Programmed', 'True');
    await egress.lab.resetCounts();
  });
  after(() => world?.stop());

  /** The gateway node that serves all clients on these nodes now, by the addresses that they leave with. */
  const serverOf = async (...clients: readonly string[]): Promise<string> => {
    const { egress } = world;
    let seen = '';
    let server: string | undefined;
    await until({ what: 'all clients to leave with one node', limitMs: 30_000, explain: () => seen }, async () => {
      const sources = await Promise.all(clients.map((node) => egress.sources(clientOn(node))));
      seen = sources.join('; ');
      server = gateways.find((name) => {
        const { ipv4, ipv6 } = egress.node(name);
        return sources.every((own) => own.join() === [ipv4, ipv6, ipv4, ipv6].join());
      });
      return server !== undefined;
    });
    return server ?? '';
  };

  /** New connections of the client on a node, over every way, all the time. */
  const startAsking = async (node: string): Promise<Asking[]> => {
    const asked: Asking[] = [];
    for (const way of ways) {
      const question = world.egress.question(way, { limitMs: 900 });
      const stream = await world.egress.client(clientOn(node)).stream(question, { everyMs: 20, isKept: false });
      asked.push({ name: `${node} ${way.transport}${way.family}`, stream });
    }
    await until({ what: `answers to ${node}`, limitMs: 10_000 }, async () => {
      const tallies = await Promise.all(asked.map(({ stream }) => stream.tally()));
      return tallies.every(({ lastAskedAtMs }) => lastAskedAtMs !== undefined);
    });
    return asked;
  };

  /** Loses the serving node while clients ask, and returns who served before and after, and how long questions failed. */
  const lose = async (context: TestContext, loss: (typeof losses)[number], keepsPods: boolean) => {
    const lost = await serverOf(...nodes);
    const heir = gateways.find((name) => name !== lost) ?? '';
    // Without the node there are no pods on it.
    const clients = keepsPods ? nodes : nodes.filter((node) => node !== lost);
    const asking = (await Promise.all(clients.map(startAsking))).flat();
    const startedAtMs = Date.now();
    try {
      await loss.strike(world.lab, lost);
      assert.equal(await serverOf(...clients), heir);
      const servedAtMs = Date.now();
      await until({ what: 'every client to be answered again', limitMs: 30_000, everyMs: 100 }, async () => {
        const tallies = await Promise.all(asking.map(({ stream }) => stream.tally()));
        return tallies.every(({ lastAskedAtMs = 0 }) => lastAskedAtMs > servedAtMs + 920);
      });
    } catch (error) {
      await loss.heal(world.lab, lost);
      throw error;
    }
    const failed: string[] = [];
    for (const { name, stream } of asking) {
      const { outages } = await stream.stop();
      const own = outages.filter(({ toMs = Number.POSITIVE_INFINITY }) => toMs >= startedAtMs);
      const ms = own.reduce((sum, { fromMs, toMs = Date.now() }) => sum + toMs - fromMs, 0);
      context.diagnostic(`${name} failed for ${ms} ms`);
      if (ms > longestMs) failed.push(`${name}: ${ms} ms`);
    }
    if (failed.length > 0) await loss.heal(world.lab, lost);
    assert.deepEqual(failed, []);
    return { lost, heir };
  };

  const expectNoStrangers = async () => {
    const known = gateways.map((name) => world.egress.node(name));
    assert.deepEqual(await world.egress.strangersAsking(watched, ...known), []);
  };

  const untilRecorded = (node: string) =>
    until({ what: `the record to name ${node}`, limitMs: 60_000 }, async () => {
      return (await world.egress.policyStatus(policyKey)).node === node;
    });

  for (const loss of losses.filter(({ name }) => name !== 'link down')) {
    test(`${loss.name}: the other gateway node serves, the record follows, and nothing moves back`, async (context) => {
      // A node without its tunnel goes on by itself for its own pods, with its own address: nobody else has that.
      const { lost, heir } = await lose(context, loss, loss.name === 'uplink lost');
      await untilRecorded(heir);
      await loss.heal(world.lab, lost);
      await world.untilBack(lost);
      await world.untilAgentsReady();
      assert.equal(await serverOf(...nodes), heir);
      assert.equal((await world.egress.policyStatus(policyKey)).node, heir);
      await expectNoStrangers();
    });
  }

  test('power off while there is no API server: the other gateway node serves all the same', async (context) => {
    const [loss = assert.fail()] = losses;
    await world.stopApi();
    const { lost, heir } = await lose(context, loss, false);
    await loss.heal(world.lab, lost);
    await world.startApi();
    await world.untilBack(lost);
    await untilRecorded(heir);
    assert.equal(await serverOf(...nodes), heir);
    await expectNoStrangers();
  });

  test('egctl drain: the other gateway node serves, and no new connection is refused for long', async (context) => {
    const drained = await serverOf(...nodes);
    const drain = {
      name: 'drain',
      leavesPods: true,
      strike: (lab: FailoverWorld['lab'], node: string) => annotate(lab, node, 'true'),
      heal: (lab: FailoverWorld['lab'], node: string) => annotate(lab, node, 'false'),
    };
    const { heir } = await lose(context, drain, true);
    await drain.heal(world.lab, drained);
    assert.equal(await serverOf(...nodes), heir);
    await expectNoStrangers();
  });
});

const annotate = async (lab: FailoverWorld['lab'], node: string, value: string): Promise<void> => {
  await lab.kubectl(['annotate', 'node', node, `egressgateway.spidernet.io/drain=${value}`, '--overwrite']);
};
