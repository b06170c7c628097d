/**
 * What `egctl why` says is what happens: for random policies, pods on every node, and destinations on both sides of every
 * edge, the outside sees exactly the source that explain() tells, and counts not one packet with another. Rounds follow each
 * other without a pause, so that policies are edited, moved and deleted on the way. `SALLYPORT_SEED=N SALLYPORT_ROUNDS=M` makes
 * other rounds, and more.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { outsideAddresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import { readAll, readClusterContext, readOwnObjects, resources, type ServedPod } from '../../src/cli/read.ts';
import { viewOf } from '../../src/cli/view.ts';
import { explainPod } from '../../src/core/explain/explain.ts';
import { parseIp } from '../../src/core/ip/index.ts';
import { plan } from '../../src/core/plan/plan.ts';
import { projectPod } from '../../src/core/project/index.ts';
import { ApiError } from '../../src/runtime/kube/api-error.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { gateways, namespaces, poolsOf, type Round, roundsFor } from './egress-chance.ts';
import { EgressWorld, type Way, ways } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

/** Fixed, so that everybody runs the same rounds. In this one a policy once cut the controllers off the API server. */
const seed = Number(process.env.SALLYPORT_SEED ?? 633_509);
const rounds = Number(process.env.SALLYPORT_ROUNDS ?? 12);
const nodes = ['gateway-1', 'gateway-2', 'worker-1', 'worker-2'];
const pods = nodes.flatMap((node) =>
  namespaces.map((namespace) => ({ name: `${namespace}-${node}`, namespace, node })),
);
const nothing = '(nothing)';

/** One question of a pod, and the source that it is to be seen with. */
interface Expectation {
  readonly pod: string;
  readonly way: Way;
  readonly to: (typeof outsideAddresses)[number];
  readonly source: string;
  /** Which policy, for the message of a failure. */
  readonly because: string;
}

describe('random policies', () => {
  let world: EgressWorld;
  let kube: KubeClient;
  tellOfLab('e2e-random');
  before(async () => {
    world = await EgressWorld.start('e2e-random');
    const access = await loadAccess({ path: world.lab.kubeconfig });
    const rateLimit = { perSecond: 200, burst: 200 };
    kube = createKubeClient({ access, userAgent: 'e2e', clock: systemClock, random: Math.random, rateLimit });
    await world.clients(...pods);
    for (const gateway of gateways) await world.gateway(gateway.name, poolsOf(gateway), gateway.labels);
  });
  after(async () => {
    await kube?.close();
    await world?.stop();
  });

  test(`every packet of ${rounds} rounds leaves as explain() says (SALLYPORT_SEED=${seed})`, async (context) => {
    const drawn = fc.sample(roundsFor(pods.map(({ name }) => world.client(name))), { seed, numRuns: rounds });
    const seen: Record<string, number> = {};
    let refused = 0;
    for (const [index, round] of drawn.entries()) {
      const place = `SALLYPORT_SEED=${seed}, round ${index + 1} of ${rounds}:\n${JSON.stringify(round, null, 1)}`;
      refused += await enact(round);
      const expectations = await untilAsExplained(place);
      for (const { because } of expectations) seen[because] = (seen[because] ?? 0) + 1;
      await expectEveryPacket(expectations, place);
    }
    const policies = drawn.flatMap((round) => round.policies).length;
    context.diagnostic(`${policies} policies (${refused} refused at admission), questions: ${JSON.stringify(seen)}`);
    // A generator whose policies are nearly all refused, or never matter, would prove nothing.
    assert.ok(refused * 4 <= policies, `${refused} of ${policies} policies were refused`);
    for (const kind of ['gateway', 'leftAlone']) assert.ok((seen[kind] ?? 0) > 0, `no packet was ${kind}`);
  });

  /** Makes the cluster what a round says; returns how many policies admission did not take. */
  const enact = async (round: Round): Promise<number> => {
    const policies = (
      await Promise.all([resourceOf('EgressPolicy'), resourceOf('EgressClusterPolicy')].map(keysOf))
    ).flat();
    const wanted = new Set(round.policies.map(({ key }) => key));
    const gone = policies.filter((key) => !wanted.has(key));
    await Promise.all(gone.map((key) => kube.delete(resourceOfKey(key), refOfKey(key))));
    await Promise.all(
      pods.map(({ namespace, name }, index) => {
        const value = { metadata: { labels: round.labels[index] } };
        return kube.patch(resources.pods, { namespace, name }, { kind: 'merge', value });
      }),
    );
    const taken = await Promise.all(round.policies.map(({ key, spec }) => applyPolicy(key, spec)));
    return taken.filter((isTaken) => !isTaken).length;
  };

  const keysOf = async (resource: ReturnType<typeof resourceOf>): Promise<string[]> =>
    (await readAll(kube, resource)).map(({ metadata: { namespace, name } }) =>
      namespace === undefined ? name : `${namespace}/${name}`,
    );

  /** False when admission refuses it: addresses of two pairs, say. What was there before stays. */
  const applyPolicy = async (key: string, spec: object): Promise<boolean> => {
    try {
      await kube.apply(resourceOfKey(key), { metadata: refOfKey(key), spec }, { fieldManager: 'e2e' });
      return true;
    } catch (error) {
      if (error instanceof ApiError && /^Eip/.test(error.reason)) return false;
      throw error;
    }
  };

  /** What explain() says about every pod, destination and way, from the objects as they are served now. */
  const explainAll = async (): Promise<Expectation[]> => {
    const { signal } = new AbortController();
    const objects = await readOwnObjects(kube, signal);
    const { view } = viewOf(objects, await readClusterContext(kube, 'sallyport', signal));
    const planned = plan(view);
    const served = (await readAll<ServedPod>(kube, resources.pods)).map(projectPod);
    return pods.flatMap(({ name: pod, namespace, node }) => {
      const podView = served.find((one) => one.name === pod && one.namespace === namespace);
      assert.ok(podView, `pod ${pod}`);
      return outsideAddresses.flatMap((to) =>
        ways.map((way): Expectation => {
          const family = way.family === 4 ? 'ipv4' : 'ipv6';
          const ip = parseIp(to[family]);
          assert.ok(ip.ok);
          const { outcome } = explainPod(view, planned, podView, ip.value);
          assert.ok(outcome, `an outcome for ${pod} to ${to[family]}`);
          const source =
            outcome.kind === 'gateway' ? outcome.eip : outcome.kind === 'drop' ? nothing : world.node(node)[family];
          return { pod, way, to, source, because: outcome.kind };
        }),
      );
    });
  };

  /** The sources that the outside sees, in the order of the expectations. Who expects an answer may wait longer for it. */
  const askAll = async (expectations: readonly Expectation[], limitMs = 1_000): Promise<string[]> => {
    const limitOf = ({ source }: Expectation) => (source === nothing ? 1_000 : limitMs);
    const answers = await Promise.all(
      pods.map(async ({ name }) => {
        const own = expectations.filter(({ pod }) => pod === name);
        return world
          .client(name)
          .askAll(own.map((each) => world.question(each.way, { to: each.to, limitMs: limitOf(each) })));
      }),
    );
    return answers.flat().map((answer) => ('failure' in answer ? nothing : answer.address));
  };

  /** The questions that are not seen as explained, as lines. */
  const differences = (expectations: readonly Expectation[], sources: readonly string[]): string[] =>
    expectations.flatMap(({ pod, way: { transport, family }, to, source, because }, index) =>
      sources[index] === source
        ? []
        : `${pod} to ${family === 4 ? to.ipv4 : to.ipv6} over ${transport}: ${sources[index]}, not ${source} (${because})`,
    );

  /** What controller and agents say that they have done, for the message of a failure. */
  const recorded = async (): Promise<string> => {
    const { policies, clusterPolicies, tunnels } = await readOwnObjects(kube, new AbortController().signal);
    const all = [...policies, ...clusterPolicies, ...tunnels];
    return all
      .map(({ metadata: { name, namespace = '' }, status }) => `${namespace}/${name} ${JSON.stringify(status)}`)
      .join('\n');
  };

  /** Controller and agents need a moment for a round: waits until everything is as explained, and returns what that is. */
  const untilAsExplained = async (place: string): Promise<Expectation[]> => {
    let different: string[] = [];
    let served = '';
    const explain = () => `${different.slice(0, 10).join('\n')}\n${served}\n${place}`;
    return until({ what: 'every packet to leave as explained', limitMs: 30_000, explain }, async () => {
      const expectations = await explainAll();
      different = differences(expectations, await askAll(expectations));
      if (different.length === 0) return expectations;
      served = await recorded();
      return undefined;
    });
  };

  /** Asks everything once more: each datagram is counted by the kernel of the outside with its one right source. */
  const expectEveryPacket = async (expectations: readonly Expectation[], place: string): Promise<void> => {
    await world.lab.resetCounts();
    const sources = await askAll(expectations, 10_000);
    const packets = await world.lab.packets();
    assert.deepEqual(differences(expectations, sources), [], place);
    const expected = (transport: string) =>
      expectations.flatMap(({ way, source }) => (way.transport === transport && source !== nothing ? [source] : []));
    const counted = (transport: 'tcp' | 'udp') =>
      packets.filter(({ protocol, port }) => protocol === transport && port === ports[transport]);
    assert.deepEqual(
      Object.fromEntries(counted('udp').map(({ source, packets: count }) => [source, count])),
      Object.fromEntries(
        Map.groupBy(expected('udp'), (source) => source)
          .entries()
          .map(([source, all]) => [source, all.length]),
      ),
      place,
    );
    const tcpSources = new Set(counted('tcp').map(({ source }) => source));
    assert.deepEqual([...tcpSources].toSorted(), [...new Set(expected('tcp'))].toSorted(), place);
  };
});

const refOfKey = (key: string): { name: string; namespace?: string } => {
  const [first = '', second] = key.split('/');
  return second === undefined ? { name: first } : { namespace: first, name: second };
};
const resourceOfKey = (key: string) => resourceOf(key.includes('/') ? 'EgressPolicy' : 'EgressClusterPolicy');
