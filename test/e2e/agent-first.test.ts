/** The whole way: a pod leaves with its EIP, keeps it while its agents die, and is back to before when the policy goes. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import { type PodClient, startClients } from '../../lab/inside/pod-client.ts';
import { AgentWorld, type RunningAgent } from './agent-world.ts';

const apiVersion = 'egressgateway.spidernet.io/v1beta1';
const eip = { ipv4: '10.77.0.100', ipv6: 'fd77::100' };
const worker = { ipv4: '10.77.0.12', ipv6: 'fd77::12' };

const gateway = {
  apiVersion,
  kind: 'EgressGateway',
  metadata: { name: 'out' },
  spec: {
    ippools: { ipv4: [eip.ipv4], ipv6: [eip.ipv6] },
    nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
  },
};
const policy = {
  apiVersion,
  kind: 'EgressPolicy',
  metadata: { namespace: 'default', name: 'shop' },
  spec: { egressGatewayName: 'out', appliedTo: { podSelector: { matchLabels: { app: 'shop' } } } },
};

describe('the agent', () => {
  let world: AgentWorld;
  let client: PodClient;
  const agents = new Map<string, RunningAgent>();
  const nodes = ['gateway-1', 'worker-1'];
  before(async () => {
    world = await AgentWorld.start('e2e-agent', { gateways: 1, workers: 1 });
    const pods = [
      { name: 'shop', namespace: 'default', node: 'worker-1' },
      { name: 'bystander', namespace: 'default', node: 'worker-1' },
    ];
    [client] = (await startClients(world.lab, pods)) as [PodClient];
    for (const node of nodes) agents.set(node, await world.agent(node));
  });
  after(() => world?.stop());

  const tunnels = async () => {
    const text = await world.lab.kubectl(['get', 'egresstunnels', '-o', 'json']);
    return (JSON.parse(text) as { items: Tunnel[] }).items;
  };

  test('without a policy a pod leaves with the address of its node, and all tunnels are Ready', async () => {
    await world.untilSource('shop', worker);
    await until({ what: 'all tunnels to be Ready', limitMs: 20_000 }, async () =>
      (await tunnels()).every(({ status }) => status?.phase === 'Ready'),
    );
  });

  test('a gateway and a policy: the pod leaves with the EIP of both families, a bystander does not', async () => {
    await world.lab.apply(gateway, policy);
    await world.untilSource('shop', eip);
    await world.untilSource('bystander', worker);
    const programmed = ['wait', '--for=condition=Programmed', 'egresspolicy/shop', '--timeout=180s'];
    await world.lab.kubectl(programmed);
    const holder = (await tunnels()).find(({ metadata }) => metadata.name === 'gateway-1');
    assert.deepEqual(
      holder?.status?.report?.eips?.map(({ ip }) => ip),
      [eip.ipv4, eip.ipv6],
    );
  });

  test('the page /kernel tells the same on both ends, and metrics count', async () => {
    const text = await world.lab.kubectl(['get', 'egresspolicy', 'shop', '-o', 'jsonpath={.status.slot}']);
    const slot = Number(text);
    const page = async (node: string, query: string) =>
      JSON.parse((await agents.get(node)?.page(`/kernel?${query}`)) ?? '') as Record<string, unknown>;
    const [source, onWorker] = [{ kind: 'slot', slot }, await page('worker-1', `ip=${client.ipv4}&slot=${slot}`)];
    assert.deepEqual((onWorker.source as { otherwise: unknown }).otherwise, source);
    assert.deepEqual(onWorker.slot, { slot, gateway: 'gateway-1', eip: {} });
    assert.deepEqual((await page('gateway-1', `slot=${slot}`)).slot, { slot, gateway: 'gateway-1', eip });
    assert.match(
      (await agents.get('worker-1')?.page('/metrics')) ?? '',
      /policy_packets_total\{policy="default\/shop"\} [1-9]/,
    );
    assert.match(
      (await agents.get('gateway-1')?.page('/metrics')) ?? '',
      /eip_packets_total\{eip="fd77::100",direction="sent"\} [1-9]/,
    );
  });

  test('agents that are killed and started again lose no packet and let none out with another address', async () => {
    await world.lab.resetCounts();
    const question = { transport: 'tcp', host: addresses.outside.ipv4, port: ports.tcp, limitMs: 3_000 } as const;
    const streams = [
      await client.stream(question, { everyMs: 20, isKept: false }),
      await client.stream({ ...question, host: addresses.outside.ipv6 }, { everyMs: 20, isKept: false }),
      await client.stream(question, { everyMs: 20, isKept: true }),
    ];
    for (const node of nodes) {
      await agents.get(node)?.end('SIGKILL');
      const restarted = await world.agent(node);
      agents.set(node, restarted);
      const changes = (await restarted.page('/metrics')).match(/^sallyport_node_changes_total.*$/gm) ?? [];
      assert.deepEqual(changes, [], `a restart on ${node} changes nothing`);
    }
    const tallies = await Promise.all(streams.map((stream) => stream.stop()));
    for (const { asked, answers, failures, reopened } of tallies) {
      assert.ok(asked > 50, `${asked} questions`);
      assert.deepEqual({ failures, reopened }, { failures: {}, reopened: 0 });
      assert.equal(Object.keys(answers).length, 1, JSON.stringify(answers));
    }
    const strangers = Object.keys(await world.lab.counts()).filter((address) => /^(10\.244\.|fd44:)/.test(address));
    assert.deepEqual(strangers, [], 'pod addresses seen outside');
    assert.equal((await world.lab.counts())[worker.ipv4], undefined, 'nothing left with the address of the worker');
  });

  test('a policy that is deleted: the pod is back to the address of its node, the EIP is gone', async () => {
    await world.lab.kubectl(['delete', 'egresspolicy', 'shop', '--timeout=180s']);
    await world.untilSource('shop', worker);
    await until({ what: 'the EIPs to be gone', limitMs: 10_000 }, async () => {
      const text = await world.lab.exec('gateway-1', ['ip', '-br', 'address']);
      return !text.includes(eip.ipv4) && !text.includes(eip.ipv6);
    });
  });

  test('cleaning leaves nothing of ours on a node', async () => {
    await world.lab.apply(policy);
    await world.untilSource('shop', eip);
    for (const node of nodes) {
      await agents.get(node)?.end('SIGTERM');
      await world.clean(node);
      const traces = await Promise.all([
        world.lab.exec(node, ['nft', 'list', 'tables']),
        world.lab.exec(node, ['ip', '-br', 'link']),
        world.lab.exec(node, ['ip', 'rule']),
        world.lab.exec(node, ['ip', '-6', 'rule']),
        world.lab.exec(node, ['ip', 'route', 'show', 'table', 'all']),
        world.lab.exec(node, ['ip', '-6', 'neigh', 'show', 'proxy']),
      ]);
      assert.doesNotMatch(traces.join('\n'), /sallyport|egress\.vxlan|egw-eip|fwmark|table 2[67]|fd77::100/);
      assert.equal(existsSync(world.stateFolder(node)), false);
    }
    await world.untilSource('shop', worker);
  });
});

interface Tunnel {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly phase?: string;
    readonly report?: { readonly eips?: readonly { readonly ip: string }[] };
  };
}
