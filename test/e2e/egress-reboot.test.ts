/**
 * Every node is rebooted in turn while its pods speak: TCP connections, UDP sockets and pings that live long, both families. The pods
 * start before the agent and leave with the address of the node then, which nothing here keeps them from. From the moment in
 * which the agent says that it is ready, not one packet of theirs has a foreign address any more.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until } from '../../lab/host/wait.ts';
import { chatter } from './chatter.ts';
import { EgressWorld, eip } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const nodes = ['gateway-1', 'gateway-2', 'worker-1'];
const eipOf = (node: string) => eip(100 + nodes.indexOf(node));

/**
 * What pods say, by source: not what a node answers by itself to a server that goes on speaking to it, which are resets and
 * ICMP errors.
 */
const listening = `table inet said {
  set sources4 { typeof ip saddr . meta l4proto; flags dynamic; size 1000; counter; }
  set sources6 { typeof ip6 saddr . meta l4proto; flags dynamic; size 1000; counter; }
  chain arrive {
    type filter hook input priority raw;
    tcp dport 9000 tcp flags & rst == 0 goto count
    udp dport 9001 goto count
    icmp type echo-request goto count
    icmpv6 type echo-request goto count
  }
  chain count {
    update @sources4 { ip saddr . meta l4proto } return
    update @sources6 { ip6 saddr . meta l4proto } return
  }
}
`;

describe('every node is rebooted in turn', () => {
  let world: EgressWorld;
  tellOfLab('e2e-reboot');
  before(async () => {
    world = await EgressWorld.start('e2e-reboot', { gateways: 2, workers: 1, set: ['operator.enabled=false'] });
    await world.gateway('main', { ipv4: ['10.77.0.100-10.77.0.109'], ipv6: ['fd77::100-fd77::109'] });
    await world.lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    for (const node of nodes) {
      await world.policy(`shop/${node}`, {
        egressGatewayName: 'main',
        egressIP: eipOf(node),
        appliedTo: { podSelector: { matchLabels: { chatter: node } } },
      });
      await world.untilPolicy(`shop/${node}`, 'Programmed', 'True');
      await world.lab.apply(chatter(node, node));
    }
    await listen();
    for (const node of nodes) await untilHeard(node, 5);
  });
  after(() => world?.stop());

  /** Counts from zero. */
  const listen = (): Promise<string> =>
    world.lab.exec('outside', ['nft', '-f', '-'], `table inet said\ndelete table inet said\n${listening}`);

  /** `source protocol` -> packets since then. */
  const said = async (): Promise<Map<string, number>> => {
    const text = await world.lab.exec('outside', ['nft', '-n', 'list', 'table', 'inet', 'said']);
    return new Map(
      [...text.matchAll(/([0-9a-f.:]+) \. (\d+|[a-z0-9-]+) counter packets (\d+)/g)].map(
        ([, source, protocol, packets]) => [`${source} ${protocol}`, Number(packets)],
      ),
    );
  };

  /** Those that no policy promises. */
  const strangers = async (): Promise<[string, number][]> => {
    const promised = new Set(nodes.flatMap((node) => Object.values(eipOf(node))));
    return [...(await said())].filter(([key]) => !promised.has(key.split(' ', 1)[0] ?? ''));
  };

  /** Waits until a pod has said so much over each protocol and family since the counts began. */
  const untilHeard = async (node: string, packets: number): Promise<void> => {
    const { ipv4, ipv6 } = eipOf(node);
    let now = new Map<string, number>();
    const wait = {
      what: `the pod on ${node} to be heard over all ways`,
      limitMs: 180_000,
      everyMs: 300,
      explain: () => JSON.stringify([...now]),
    };
    await until(wait, async () => {
      now = await said();
      const ways = [`${ipv4} 6`, `${ipv4} 17`, `${ipv4} 1`, `${ipv6} 6`, `${ipv6} 17`, `${ipv6} 58`];
      return ways.every((way) => (now.get(way) ?? 0) >= packets);
    });
  };

  /** The agent of before is dead, so whoever answers is the one of this boot. */
  const untilReady = async (node: string): Promise<void> => {
    const argv = ['curl', '-s', '--max-time', '2', `http://${world.node(node).ipv4}:7790/readyz`];
    await until({ what: `the agent of ${node} to be ready`, limitMs: 180_000, everyMs: 100 }, async () =>
      (await world.lab.exec(node, argv).catch(() => '')).endsWith('ok\n'),
    );
  };

  let leaked = 0;
  for (const node of nodes) {
    test(`${node}: nothing foreign leaves once its agent is ready, and none of what was open goes on`, async (t) => {
      await listen();
      await world.lab.power('reboot', node);
      await untilReady(node);
      const early = await strangers();
      await listen();
      leaked += early.reduce((sum, [, packets]) => sum + packets, 0);
      t.diagnostic(`before the agent was ready: ${JSON.stringify(early)}`);
      // Only this node had no rules.
      const own = Object.values(world.node(node));
      assert.deepEqual(
        early.filter(([key]) => !own.includes(key.split(' ', 1)[0] ?? '')),
        [],
      );
      for (const one of nodes) await untilHeard(one, 40);
      assert.deepEqual(await strangers(), []);
    });
  }

  test('pods did speak before their agents, or this shows nothing', () => assert.ok(leaked > 0));
});
