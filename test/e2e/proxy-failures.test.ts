/** The egress proxy when things go wrong: programs that are killed, a node without power, no operator, no API server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import type { StreamOptions, Tally } from '../../lab/inside/client.ts';
import { outsideServer, ProxyWorld } from './proxy-world.ts';

const key = 'shop/main';
const database = { name: 'db', sourceport: 5432, destport: ports.database, ips: addresses.outside.ipv4 };
const question = { transport: 'tcp', host: 'main-db.shop', port: 5432, limitMs: 2_000 } as const;
const operator = ['-n', 'sallyport'];
const answersOf = ({ answers }: Tally): number => Object.values(answers).reduce((sum, count) => sum + count, 0);

describe('the egress proxy through failures', () => {
  let world: ProxyWorld;
  before(async () => {
    world = await ProxyWorld.start('e2e-proxy-failures');
    world.names({ 'api.example.com': outsideServer });
    // Whatever node is lost, the client and the gateway node are not.
    await world.clients({ name: 'client', namespace: 'shop', node: 'gateway-1' });
    for (const node of ['worker-1', 'worker-2']) await world.lab.kubectl(['label', 'node', node, 'proxies=yes']);
    await world.controller('main', { selector: { proxies: 'yes' }, minReplicas: 2, maxReplicas: 4 });
    await world.egress(key, spec(database));
    await world.untilState(key, 'Synced', 120_000);
  });
  after(() => world?.stop());

  const spec = (...tcp: readonly object[]) => ({
    controller: { name: 'main' },
    rules: { tcp, http: [{ name: 'api', host: 'api.example.com', tls: true }] },
  });
  const untilReplicas = (count: number) =>
    until({ what: `${count} ready replicas`, limitMs: 90_000 }, async () => {
      const pods = await world.proxyPods('main');
      return pods.length === count ? pods : undefined;
    });
  /** Does something while connections stream; returns what they saw. */
  const whileStreaming = async (
    options: StreamOptions,
    act: (seen: () => Promise<Tally>) => Promise<void>,
  ): Promise<Tally> => {
    const stream = await world.client('client').stream(question, options);
    try {
      const first = { what: 'every connection to be answered', limitMs: 30_000 };
      await until(first, async () => answersOf(await stream.tally()) >= 2 * (options.connections ?? 1));
      await act(() => stream.tally());
    } catch (error) {
      await stream.stop();
      throw error;
    }
    return stream.stop();
  };
  /** New connections are answered, all of them: kube-proxy hears of replicas that come and go a moment after the operator. */
  const untilAllAnswered = () =>
    until({ what: 'every new connection to be answered', limitMs: 60_000 }, async () => {
      const answers = await world.client('client').askAll(Array.from({ length: 20 }, () => question));
      return answers.every((answer) => !('failure' in answer));
    });
  /** Each replica is on a node of its own, so the outside sees one address for each that connections go through. */
  const untilBothUsed = () =>
    until({ what: 'connections through both replicas', limitMs: 60_000 }, async () => {
      const answers = await world.client('client').askAll(Array.from({ length: 20 }, () => question));
      const sources = answers.flatMap((answer) => ('failure' in answer ? [] : [answer.address]));
      return sources.length === 20 && new Set(sources).size === 2;
    });
  const kept = (connections: number): StreamOptions => ({ everyMs: 200, isKept: true, connections });

  test('a killed replica comes back with its rules; connections of the other one stream on', async () => {
    const [pod] = await untilReplicas(2);
    assert.ok(pod !== undefined);
    await untilBothUsed();
    const tally = await whileStreaming(kept(60), async () => {
      assert.ok((await world.lab.kill(pod.node, /proxy --controller=bcs-system\/main/)) > 0);
      await untilReplicas(1);
      await untilReplicas(2);
      await world.untilState(key, 'Synced');
    });
    assert.ok(tally.reopened > 0 && tally.reopened < 60, `${tally.reopened} of 60 connections were broken`);
  });

  test('a killed engine comes back with its rules in the same pod', async () => {
    const [pod] = await untilReplicas(2);
    assert.ok(pod !== undefined);
    await untilBothUsed();
    const tally = await whileStreaming(kept(60), async (seen) => {
      assert.ok((await world.lab.kill(pod.node, /^\S*envoy /)) > 0);
      await until({ what: 'broken connections', limitMs: 30_000 }, async () => (await seen()).reopened > 0);
      const what = 'the engine to serve again';
      await until({ what, limitMs: 30_000 }, async () => (await answersOfEach(pod.ips)).every((seen) => seen));
      await untilReplicas(2);
      await world.untilState(key, 'Synced');
    });
    assert.ok(tally.reopened > 0 && tally.reopened < 60, `${tally.reopened} of 60 connections were broken`);
    const after = (await world.proxyPods('main')).map(({ name }) => name);
    assert.ok(after.includes(pod.name), `${pod.name} is not among ${after.join(', ')}`);
  });

  test('a node without power: the replica on the other node serves on', async () => {
    const [lost] = await untilReplicas(2);
    assert.ok(lost !== undefined);
    await untilBothUsed();
    const tally = await whileStreaming(kept(40), async () => {
      await world.lab.power('off', lost.node);
      await until({ what: 'one replica to be left', limitMs: 90_000 }, async () => {
        const pods = await world.proxyPods('main');
        return pods.length > 0 && pods.every(({ node }) => node !== lost.node);
      });
      await world.untilState(key, 'Synced');
      // New connections find the replica that is left.
      await untilAllAnswered();
      await world.lab.power('on', lost.node);
      await untilReplicas(2);
      await world.untilState(key, 'Synced');
    });
    assert.ok(tally.reopened < 40, `${tally.reopened} of 40 connections were broken`);
  });

  test('no replica at all is Unknown, and Synced again when they are back', async () => {
    const scale = (replicas: number) =>
      world.lab.kubectl(['-n', 'bcs-system', 'scale', 'deployment', 'main', `--replicas=${replicas}`]);
    await scale(0);
    const unknown = await world.untilState(key, 'Unknown', 90_000);
    assert.match(unknown.reason ?? '', /bcs-system\/main/);
    const { syncedAt } = unknown;
    await scale(2);
    const back = await world.untilState(key, 'Synced', 90_000);
    assert.equal(back.syncedAt, syncedAt, 'the rules did not change, so syncedAt does not');
  });

  test('another replica serves the same rules when the proxy is scaled out', async () => {
    await untilAllAnswered();
    const tally = await whileStreaming(kept(30), async () => {
      await world.lab.kubectl(['-n', 'bcs-system', 'scale', 'deployment', 'main', '--replicas=3']);
      const pods = await untilReplicas(3);
      await world.untilState(key, 'Synced');
      for (const { ips } of pods) assert.deepEqual(await answersOfEach(ips), [true, true]);
    });
    assert.deepEqual([tally.failures, tally.reopened], [{}, 0]);
    assert.equal((await world.controllerStatus('main')).readyReplicas, 3);
  });

  test('without an operator rules serve on; changes are taken when it is back', async () => {
    const tally = await whileStreaming(kept(30), async () => {
      const scale = (replicas: number) =>
        world.lab.kubectl([...operator, 'scale', 'deployment', 'sallyport-operator', `--replicas=${replicas}`]);
      await scale(0);
      await until({ what: 'no operator to be left', limitMs: 60_000 }, async () => {
        const names = await world.lab.kubectl([...operator, 'get', 'pods', '-o', 'name']);
        return !names.includes('/sallyport-operator-');
      });
      const answers = await world.client('client').askAll(Array.from({ length: 20 }, () => question));
      assert.deepEqual(
        answers.filter((answer) => 'failure' in answer),
        [],
      );
      await scale(2);
      await world.egress(key, spec(database, { ...database, name: 'more', sourceport: 5433 }));
      await world.untilState(key, 'Synced', 90_000);
    });
    assert.deepEqual([tally.failures, tally.reopened], [{}, 0]);
  });

  test('an API server that is killed and started again breaks no connection, and changes go on after it', async () => {
    const tally = await whileStreaming(kept(30), async () => {
      await world.lab.restart('kube-apiserver');
      await world.egress(key, spec(database, { ...database, name: 'later', sourceport: 5434 }));
      await world.untilState(key, 'Synced', 90_000);
    });
    assert.deepEqual([tally.failures, tally.reopened], [{}, 0]);
  });

  /** Whether a replica answers at each of its addresses. */
  const answersOfEach = async (ips: readonly string[]): Promise<boolean[]> => {
    const answers = await world.client('client').askAll(ips.map((host) => ({ ...question, host })));
    return answers.map((answer) => !('failure' in answer));
  };
});
