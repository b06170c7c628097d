/**
 * The egress proxy when things go wrong: programs that are killed, a node without power, no operator, no API server. A proxy
 * of each engine goes through every failure, at the same time.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import type { StreamOptions, Tally } from '../../lab/inside/client.ts';
import { outsideServer, type ProxyPod, ProxyWorld } from './proxy-world.ts';
import { tellOfLab } from './witness.ts';

/** What stands for each engine: a proxy and a BCSEgress of the same name, a port, and how its program shows among processes. */
const engines = [
  { engine: 'envoy', name: 'main', port: 5432, program: /^\S*envoy / },
  { engine: 'nginx', name: 'seed', port: 5442, program: /^nginx: / },
] as const;
type Engine = (typeof engines)[number];

const keyOf = ({ name }: Engine): string => `shop/${name}`;
const database = { name: 'db', destport: ports.database, ips: addresses.outside.ipv4 };
const questionOf = ({ name, port }: Engine) =>
  ({ transport: 'tcp', host: `${name}-db.shop`, port, limitMs: 5_000 }) as const;
const answersOf = ({ answers }: Tally): number => Object.values(answers).reduce((sum, count) => sum + count, 0);
const each = <T>(work: (engine: Engine) => Promise<T>): Promise<T[]> => Promise.all(engines.map(work));

describe('the egress proxy through failures', () => {
  let world: ProxyWorld;
  tellOfLab('e2e-proxy-failures');
  before(async () => {
    // Nobody here has an EIP.
    world = await ProxyWorld.start('e2e-proxy-failures', ['agent.enabled=false']);
    world.names({ 'main.api.example.com': outsideServer, 'seed.api.example.com': outsideServer });
    // Whatever node is lost, the client and the gateway node are not.
    await world.clients({ name: 'client', namespace: 'shop', node: 'gateway-1' });
    for (const node of ['worker-1', 'worker-2']) await world.lab.kubectl(['label', 'node', node, 'proxies=yes']);
    await each(async ({ engine, name }) =>
      world.controller(name, { engine, selector: { proxies: 'yes' }, minReplicas: 2, maxReplicas: 4 }),
    );
    await each(async (engine) => world.egress(keyOf(engine), specOf(engine)));
    await untilAll('Synced', 120_000);
  });
  after(() => world?.stop());

  const specOf = ({ name, port }: Engine, ...more: readonly object[]) => ({
    controller: { name },
    rules: {
      tcp: [{ ...database, sourceport: port }, ...more],
      http: [{ name: 'api', host: `${name}.api.example.com`, tls: true }],
    },
  });
  const untilAll = (state: 'Synced' | 'Unknown', limitMs?: number) =>
    each((engine) => world.untilState(keyOf(engine), state, limitMs));
  const untilReplicas = (count: number) =>
    each(({ name }) =>
      until({ what: `${count} ready replicas of ${name}`, limitMs: 90_000 }, async () => {
        const pods = await world.proxyPods(name);
        return pods.length === count ? pods : undefined;
      }),
    );
  /** The replicas of both proxies on one node. */
  const onOneNode = async (): Promise<{ node: string; pods: readonly ProxyPod[] }> => {
    const all = (await untilReplicas(2)).flat();
    const node = all[0]?.node ?? '';
    const pods = all.filter((pod) => pod.node === node);
    assert.equal(pods.length, engines.length, 'replicas of a proxy are on nodes of their own');
    return { node, pods };
  };
  /** Does something while connections stream through both proxies; returns what they saw. */
  const whileStreaming = async (
    options: StreamOptions,
    act: (seen: () => Promise<Tally[]>) => Promise<void>,
  ): Promise<Tally[]> => {
    const streams = await each((engine) => world.client('client').stream(questionOf(engine), options));
    const seen = () => Promise.all(streams.map((stream) => stream.tally()));
    const stop = () => Promise.all(streams.map((stream) => stream.stop()));
    try {
      const first = { what: 'every connection to be answered', limitMs: 30_000 };
      await until(first, async () =>
        (await seen()).every((tally) => answersOf(tally) >= 2 * (options.connections ?? 1)),
      );
      await act(seen);
    } catch (error) {
      await stop();
      throw error;
    }
    return stop();
  };
  /** What the outside sees of twenty new connections through a proxy; undefined for those that failed. */
  const sourcesOf = async (engine: Engine): Promise<(string | undefined)[]> => {
    const answers = await world.client('client').askAll(Array.from({ length: 20 }, () => questionOf(engine)));
    return answers.map((answer) => ('failure' in answer ? undefined : answer.address));
  };
  /** New connections are answered, all of them: kube-proxy hears of replicas that come and go a moment after the operator. */
  const untilAllAnswered = () =>
    each((engine) =>
      until({ what: `every new connection of ${engine.name} to be answered`, limitMs: 60_000 }, async () =>
        (await sourcesOf(engine)).every((source) => source !== undefined),
      ),
    );
  /** Each replica is on a node of its own, so the outside sees one address for each that connections go through. */
  const untilBothUsed = () =>
    each((engine) =>
      until({ what: `connections through both replicas of ${engine.name}`, limitMs: 60_000 }, async () => {
        const sources = await sourcesOf(engine);
        return sources.every((source) => source !== undefined) && new Set(sources).size === 2;
      }),
    );
  /** Whether a replica answers at each of its addresses. */
  const answersOfEach = async (engine: Engine, ips: readonly string[]): Promise<boolean[]> => {
    const answers = await world.client('client').askAll(ips.map((host) => ({ ...questionOf(engine), host })));
    return answers.map((answer) => !('failure' in answer));
  };
  const kept = (connections: number): StreamOptions => ({ everyMs: 200, isKept: true, connections });
  const assertSomeBroken = (tallies: readonly Tally[], connections: number): void => {
    for (const [index, { broken }] of tallies.entries()) {
      const what = `${broken} of ${connections} connections of ${engines[index]?.name} were broken`;
      assert.ok(broken > 0 && broken < connections, what);
    }
  };
  const assertNoneBroken = (tallies: readonly Tally[]): void =>
    assert.deepEqual(
      tallies.map(({ failures, reopened }) => [failures, reopened]),
      engines.map(() => [{}, 0]),
    );

  test('a killed replica comes back with its rules; connections of the other one stream on', async () => {
    const { node, pods } = await onOneNode();
    await untilBothUsed();
    const tallies = await whileStreaming(kept(60), async () => {
      await each(async ({ name }) =>
        assert.ok((await world.lab.kill(node, new RegExp(`proxy --controller=bcs-system/${name}`))) > 0),
      );
      // That one replica is missing for a moment may be over before we look.
      const hasRestarted = (after: ProxyPod) =>
        pods.some(({ name, restarts }) => name === after.name && after.restarts > restarts);
      await until({ what: 'both to be started again', limitMs: 90_000 }, async () => {
        const all = (await untilReplicas(2)).flat();
        return all.filter(hasRestarted).length === engines.length;
      });
      await untilAll('Synced');
    });
    assertSomeBroken(tallies, 60);
  });

  test('a killed engine comes back with its rules in the same pod', async () => {
    const { node, pods } = await onOneNode();
    await untilBothUsed();
    const tallies = await whileStreaming(kept(60), async (seen) => {
      await each(async ({ program }) => assert.ok((await world.lab.kill(node, program)) > 0));
      const gone = { what: 'broken connections', limitMs: 30_000 };
      await until(gone, async () => (await seen()).every(({ broken }) => broken > 0));
      await each(async (engine) => {
        const own = pods.find(({ name }) => name.startsWith(`${engine.name}-`));
        const what = `${engine.engine} to serve again`;
        await until({ what, limitMs: 30_000 }, async () => {
          const answers = await answersOfEach(engine, own?.ips ?? []);
          return answers.length > 0 && answers.every((isAnswered) => isAnswered);
        });
      });
      await untilReplicas(2);
      await untilAll('Synced');
    });
    assertSomeBroken(tallies, 60);
    const names = (await untilReplicas(2)).flat().map(({ name }) => name);
    for (const { name } of pods) assert.ok(names.includes(name), `${name} is not among ${names.join(', ')}`);
  });

  test('a node without power: the replicas on the other node serve on', async () => {
    const { node } = await onOneNode();
    await untilBothUsed();
    const tallies = await whileStreaming(kept(40), async () => {
      await world.lab.power('off', node);
      await each(({ name }) =>
        until({ what: `one replica of ${name} to be left`, limitMs: 90_000 }, async () => {
          const pods = await world.proxyPods(name);
          return pods.length > 0 && pods.every((pod) => pod.node !== node);
        }),
      );
      await untilAll('Synced');
      // New connections find the replicas that are left.
      await untilAllAnswered();
      await world.lab.power('on', node);
      await untilReplicas(2);
      await untilAll('Synced');
    });
    for (const { broken } of tallies) assert.ok(broken < 40, `${broken} of 40 connections were broken`);
  });

  test('no replica at all is Unknown, and Synced again when they are back', async () => {
    await scale(0);
    const unknown = await untilAll('Unknown', 90_000);
    for (const [index, { reason }] of unknown.entries()) {
      assert.match(reason ?? '', new RegExp(`bcs-system/${engines[index]?.name}`));
    }
    await scale(2);
    const back = await untilAll('Synced', 90_000);
    assert.deepEqual(
      back.map(({ syncedAt }) => syncedAt),
      unknown.map(({ syncedAt }) => syncedAt),
      'the rules did not change, so syncedAt does not',
    );
  });

  test('more replicas serve the same rules when a proxy is scaled out, and the operator leaves their number alone', async () => {
    await untilAllAnswered();
    const tallies = await whileStreaming(kept(30), async () => {
      await scale(3);
      const replicas = await untilReplicas(3);
      await untilAll('Synced');
      await each(async (engine) => {
        for (const { ips } of replicas[engines.indexOf(engine)] ?? []) {
          assert.deepEqual(await answersOfEach(engine, ips), [true, true]);
        }
      });
      // A change of the rules makes the operator write the objects of the proxy anew.
      await each((engine) => world.egress(keyOf(engine), specOf(engine, { ...database, ...extra(engine, 'wide', 1) })));
      await untilAll('Synced');
    });
    assertNoneBroken(tallies);
    for (const { name } of engines) {
      assert.equal((await world.controllerStatus(name)).readyReplicas, 3);
      const replicas = ['-n', 'bcs-system', 'get', 'deployment', name, '-o', 'jsonpath={.spec.replicas}'];
      assert.equal(await world.lab.kubectl(replicas), '3');
    }
  });

  test('a proxy that is scaled from two to four and to one refuses no new connection', async () => {
    await each(({ engine, name }) =>
      world.controller(name, { engine, selector: { proxies: 'yes' }, minReplicas: 1, maxReplicas: 4 }),
    );
    await scale(2);
    await untilAllAnswered();
    const tallies = await whileStreaming({ everyMs: 50, isKept: false, connections: 10 }, async () => {
      await scale(4);
      await untilReplicas(4);
      await untilAll('Synced');
      await scale(1);
      await untilReplicas(1);
      // A replica that is stopping serves on until nobody comes any more, and only then ends its engine.
      const left = { what: 'the other replicas to be gone', limitMs: 120_000 };
      await until(left, async () => {
        const pods = await world.lab.kubectl(['-n', 'bcs-system', 'get', 'pods', '-o', 'name']);
        return pods.trim().split('\n').length === engines.length;
      });
    });
    assert.deepEqual(
      tallies.map(({ failures }) => failures),
      engines.map(() => ({})),
    );
    await scale(3);
    await untilReplicas(3);
  });

  test('operators that are killed are missed by nobody; changes are taken when they are back', async () => {
    // One that has lost its lease on a busy machine is on its way back.
    await world.lab.kubectl([
      '-n',
      'sallyport',
      'rollout',
      'status',
      'deployment/sallyport-operator',
      '--timeout=180s',
    ]);
    const tallies = await whileStreaming(kept(30), async () => {
      const killed = await Promise.all(
        ['gateway-1', 'worker-1', 'worker-2'].map((node) => world.lab.kill(node, / operator /)),
      );
      assert.equal(
        killed.reduce((sum, count) => sum + count, 0),
        2,
        'both operators',
      );
      for (const engine of engines) assert.ok((await sourcesOf(engine)).every((source) => source !== undefined));
      await each((engine) => world.egress(keyOf(engine), specOf(engine, { ...database, ...extra(engine, 'more', 2) })));
      await untilAll('Synced', 90_000);
    });
    assertNoneBroken(tallies);
  });

  test('an API server that is killed and started again breaks no connection, and changes go on after it', async () => {
    const tallies = await whileStreaming(kept(30), async () => {
      await world.lab.restart('kube-apiserver');
      await each((engine) =>
        world.egress(keyOf(engine), specOf(engine, { ...database, ...extra(engine, 'later', 3) })),
      );
      await untilAll('Synced', 90_000);
    });
    assertNoneBroken(tallies);
  });

  const scale = (replicas: number) =>
    each(({ name }) => world.lab.kubectl(['-n', 'bcs-system', 'scale', 'deployment', name, `--replicas=${replicas}`]));
  /** One more rule to the database. */
  const extra = ({ port }: Engine, name: string, more: number) => ({ name, sourceport: port + more });
});
