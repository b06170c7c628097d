/**
 * Faults by chance under steady traffic and a churn of policies: processes killed, nodes lost and rebooted, API server and
 * etcd restarted, ways cut, foreign hands. At every quiet point all is as it should be: packets as explained, one node per EIP,
 * nothing left over, memory flat; and at no time a packet with a foreign address. The seed is always the same where nobody
 * says otherwise, so that a run can be compared with the last one: `SALLYPORT_SEED=N SALLYPORT_MINUTES=30`.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { agentPattern } from '../../lab/faults/processes.ts';
import { run } from '../../lab/host/command.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { until } from '../../lab/host/wait.ts';
import type { RunningStream } from '../../lab/inside/pod-client.ts';
import { askAll } from '../../lab/observer/questions.ts';
import { processesOn } from '../../lab/power.ts';
import { ip } from '../../src/core/testing/address.ts';
import { eip, ways } from '../e2e/egress-world.ts';
import { FailoverWorld, type PlacedFlow, watched } from '../e2e/failover-world.ts';
import { podOn } from '../e2e/gateway-pods.ts';
import { talker } from '../e2e/talker.ts';
import { tellOfLab } from '../e2e/witness.ts';
import { isExplained } from './doubled.ts';
import { newScene, type Random, randomOf, type Scene, type Standing, strike } from './faults.ts';

const seed = Number(process.env.SALLYPORT_SEED ?? 20261115);
const minutes = Number(process.env.SALLYPORT_MINUTES ?? 5);
const clients = ['one', 'two', 'three'];
const gateways = ['gateway-1', 'gateway-2'];
const labName = 'e2e-chaos';
const egctl = join(import.meta.dirname, '..', '..', 'bin', 'egctl');
const churned = 8;
const episodeMs = 30_000;
const quietLimitMs = 90_000;
const shortestPauseMs = 300;
// Faults that come one upon the other move an EIP to and fro, but no take-over is quicker than this. Two owners at once are:
// clients and the pods on both gateway nodes send every few milliseconds.
const inTurnMs = 100;
const mixedLimitMs = 1_000;
// Somebody at the router asks so often by ARP and neighbour discovery who has the EIP: whoever holds it answers.
const askEveryMs = 50;

describe('chaos', () => {
  let world: FailoverWorld;
  let onGateways: { readonly streams: readonly RunningStream[]; readonly flows: readonly PlacedFlow[] };
  onGateways = { streams: [], flows: [] };
  const random = randomOf(seed);
  tellOfLab(labName);
  before(async () => {
    // Also pods on nodes that boot never leave with another address: agents are strict, and these pods wait for them.
    world = await FailoverWorld.start(labName, { set: ['config.feature.strictPodStart=true'] });
    await world.lab.apply(...gateways.map((name) => talker(`talker-${name}`, name)));
  });
  after(() => world?.stop());

  test(`${minutes} minutes of faults (SALLYPORT_SEED=${seed} SALLYPORT_MINUTES=${minutes})`, async (context) => {
    const endMs = performance.now() + minutes * 60_000;
    const streams: RunningStream[] = [];
    for (const name of clients) {
      for (const way of ways) {
        const question = world.egress.question(way, { limitMs: 3_000 });
        streams.push(await world.egress.client(name).stream(question, { everyMs: 100, isKept: false }));
      }
    }
    context.after(askAll(world.lab, [ip(watched.ipv4), ip(watched.ipv6)], askEveryMs));
    const memory: number[] = [memoryOfAgents()];
    let quietSinceMs = Date.now();
    let longestMs = episodeMs;
    // Another one is begun if it will end in time, quiet point and all, going by the longest so far.
    for (let episode = 1; performance.now() + longestMs < endMs; episode += 1) {
      const startMs = performance.now();
      const { story, doubled } = await misbehave();
      const place = `SALLYPORT_SEED=${seed}, episode ${episode}:\n${story.join('\n')}`;
      // At once, not with the outcome: a run may be broken off.
      console.log(place);
      const mixedMs = await expectQuiet(place, streams, quietSinceMs, doubled);
      const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
      console.log(`quiet after ${seconds} s; frames of two owners alternated for ${mixedMs.toFixed(0)} ms at the most`);
      quietSinceMs = Date.now();
      memory.push(memoryOfAgents());
      longestMs = Math.max(longestMs, performance.now() - startMs);
    }
    for (const stream of streams) await stream.stop();
    context.diagnostic(`memory of the agents in MB, at each quiet point: ${memory.join(', ')}`);
    const [, first = 0] = memory;
    assert.ok((memory.at(-1) ?? 0) <= first * 1.3, `memory of the agents grew: ${memory.join(', ')} MB`);
  });

  /** One episode: faults by chance, each undone at some time; at its end all of them. Tells what was done. */
  const misbehave = async (): Promise<{ readonly story: string[] } & Pick<Scene, 'doubled'>> => {
    const story: string[] = [];
    const standing: Standing[] = [];
    const over: Promise<void>[] = [];
    const scene = newScene();
    const startMs = performance.now();
    const tell = (what: string) => void story.push(`${((performance.now() - startMs) / 1_000).toFixed(1)} s: ${what}`);
    const undo = async () => {
      const old = standing.shift();
      if (old === undefined) return;
      await old.undo?.();
      tell(`undone: ${old.what}`);
    };
    const stop = new AbortController();
    const churning = churn(random, stop.signal);
    try {
      while (performance.now() - startMs < episodeMs) {
        const done = await strike(world.lab, random, scene);
        if (done !== undefined) tell(done.what);
        if (done?.undo !== undefined) standing.push(done);
        if (done?.over !== undefined) over.push(done.over.then(() => tell(`over: ${done.what}`)));
        // One that fails meanwhile fails the test when it is waited for.
        over.at(-1)?.catch(() => {});
        // The pause is part of what is drawn: faults that meet, and faults that come alone.
        await delay(shortestPauseMs + 4_000 * random() ** 2);
        if (random() < 0.5) await undo();
      }
    } finally {
      while (standing.length > 0) await undo();
      await Promise.all(over);
      stop.abort();
      await churning;
    }
    return { story, doubled: scene.doubled };
  };

  /** Makes, edits and deletes policies of pods that nobody runs, until told to stop. Refusals are part of it. */
  const churn = async (draw: Random, signal: AbortSignal): Promise<void> => {
    // A generator of its own: how often it is asked depends on how fast the API server is.
    const own = randomOf(Math.floor(draw() * 2 ** 31));
    while (!signal.aborted) {
      const name = `churn-${Math.floor(own() * churned)}`;
      const spec = {
        egressGatewayName: 'main',
        egressIP: eip(101 + Math.floor(own() * 8)),
        appliedTo: { podSelector: { matchLabels: { team: name } } },
      };
      const manifest = JSON.stringify({
        apiVersion,
        kind: 'EgressPolicy',
        metadata: { namespace: 'shop', name },
        spec,
      });
      const limit = ['--request-timeout=3s'];
      if (own() < 0.7) await world.lab.tryKubectl([...limit, 'apply', '-f', '-'], manifest);
      else await world.lab.tryKubectl([...limit, '-n', 'shop', 'delete', 'egresspolicy', name, '--wait=false']);
      await delay(1_000 * own());
    }
  };

  /**
   * All is well again after a while, and was never wrong in what must not be wrong even for a moment. Returns the longest time in
   * which an EIP was seen of two nodes in turn.
   */
  const expectQuiet = async (
    place: string,
    streams: readonly RunningStream[],
    sinceMs: number,
    doubled: Scene['doubled'],
  ): Promise<number> => {
    const undoneMs = Date.now();
    let missing = '';
    let longestMs = 0;
    const wait = {
      what: 'a quiet cluster',
      limitMs: quietLimitMs,
      everyMs: 500,
      explain: () => `${missing}\n${place}`,
    };
    await until(wait, async () => {
      const before = missing;
      missing = await unrest(undoneMs);
      if (missing !== before)
        console.log(`${((Date.now() - undoneMs) / 1_000).toFixed(0)} s later: ${missing || 'all is well'}`);
      return missing === '';
    });
    for (const client of clients) await world.egress.untilSource(client, watched);
    const quietMs = Date.now();
    await expectGatewayPods(place, quietMs);
    await until({ what: 'two seconds of answers', limitMs: 30_000, explain: () => place }, async () => {
      const tallies = await Promise.all([...streams, ...onGateways.streams].map((stream) => stream.tally()));
      return tallies.every(({ lastAskedAtMs = 0 }) => lastAskedAtMs > quietMs + 2_000);
    });
    await world.meetNodes();
    const moves = await takeOvers();
    for (const ip of [watched.ipv4, watched.ipv6]) {
      const lately = [...spellsFrom(ip, quietMs), ...moves].join('\n');
      assert.equal(world.observer.macs(ip, quietMs).length, 1, `owners of ${ip} in a quiet time\n${place}\n${lately}`);
      for (const { atMs, mixedMs } of world.observer.handOvers(ip, sinceMs, 'all', inTurnMs)) {
        const seen = [...spellsFrom(ip, atMs - 1_000), ...moves].join('\n');
        const when = `from ${new Date(atMs).toISOString()} on`;
        const toMs = atMs + mixedMs;
        const both = world.observer.macs(ip, atMs, toMs).map((mac) => world.nodeOf(mac));
        const isDoubled = mixedMs > mixedLimitMs && isExplained(doubled, both, atMs, toMs);
        if (!isDoubled) longestMs = Math.max(longestMs, mixedMs);
        else console.log(`${ip} had two owners for ${mixedMs.toFixed(0)} ms by two faults at once`);
        assert.ok(
          isDoubled || mixedMs <= mixedLimitMs,
          `${ip} had two owners for ${mixedMs.toFixed(0)} ms ${when}\n${place}\n${seen}`,
        );
      }
    }
    assert.equal(world.observer.lostFrames, 0);
    assert.deepEqual(await world.egress.strangersAsking(watched), [], place);
    const explained = [...clients, ...gateways.map(podOn)].map(async (client) => {
      const argv = [egctl, 'why', `shop/${client}`, '--to', world.lab.status.outside.ipv4];
      const { code, stdout, stderr } = await run(argv, { env: { KUBECONFIG: world.lab.kubeconfig } });
      assert.equal(code, 0, `${stdout}${stderr}\n${place}`);
    });
    await Promise.all(explained);
    return longestMs;
  };

  /**
   * Pods on gateway nodes have a way out, and so has UDP that has kept its port since the last quiet point, if their node has not booted. They
   * begin anew each time.
   */
  const expectGatewayPods = async (place: string, quietMs: number): Promise<void> => {
    const nodes = await world.meetGatewayPods();
    assert.deepEqual(nodes, gateways, place);
    for (const { flow, place: where } of onGateways.flows) {
      const read = () => flow.report().catch(() => undefined);
      const wait = { what: `UDP${where} that has kept its port`, limitMs: 10_000, explain: () => place };
      await until(wait, async () => {
        const report = await read();
        return report === undefined || report.kind !== 'udp' || (report.lastHeardAtMs ?? 0) > quietMs;
      });
      await flow.stop().catch(() => {});
    }
    for (const stream of onGateways.streams) await stream.stop().catch(() => {});
    const started = await world.startGatewayStreams(nodes);
    onGateways = { streams: started.map(({ stream }) => stream), flows: await world.startGatewayFlows(nodes) };
  };

  /** Who used an address for how long, in the first seconds after a time, for whoever has to find out why: how it began and how it ended. */
  const spellsFrom = (ip: string, fromMs: number): string[] => {
    const all = world.observer.spells(ip).filter(({ toMs, fromMs: at }) => toMs >= fromMs && at <= fromMs + 4_000);
    return all
      .filter((_, index) => index < 20 || index >= all.length - 5)
      .map((spell) => {
        const [after, lasted] = [spell.fromMs - fromMs, spell.toMs - spell.fromMs].map((ms) => ms.toFixed(0));
        return `${world.nodeOf(spell.mac)} after ${after} ms for ${lasted} ms, ${spell.frames} frames`;
      });
  };

  /** What agents have said about owners, with the cause. */
  const takeOvers = async (): Promise<string[]> => {
    const path = 'jsonpath={range .items[*]}{.metadata.creationTimestamp} {.message}{"\\n"}{end}';
    const told = await world.lab.kubectl(['get', 'events', '-A', '--field-selector=reason=EipTakenOver', '-o', path]);
    return told.trim().split('\n').toSorted().slice(-12);
  };

  /** What is not as in a quiet cluster; empty when all is. What was written before the time says nothing: it may be of somebody who died. */
  const unrest = async (undoneMs: number): Promise<string> => {
    const read = async (...what: readonly string[]) => {
      const text = await world.lab.kubectl(['get', ...what, '-A', '-o', 'json', '--request-timeout=5s']);
      // The API server has checked these against their schemas.
      return (JSON.parse(text) as { items: Served[] }).items;
    };
    const isTrue = ({ status }: Served, type: string) =>
      status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true;
    const notReady = (await read('nodes')).filter((node) => !isTrue(node, 'Ready'));
    if (notReady.length > 0) return `nodes not ready: ${namesOf(notReady)}`;
    const resting = await replaceResting();
    if (resting.length > 0) return `containers that wait to be started again: ${resting.join(', ')}`;
    const renewed = ['-n', 'sallyport', 'get', 'lease', 'sallyport-controller', '-o', 'jsonpath={.spec.renewTime}'];
    if (Date.parse(await world.lab.kubectl(renewed)) < undoneMs) return 'no controller leads';
    const tunnels = await read('egresstunnels');
    const silent = tunnels.filter(({ status }) => !(Date.parse(status?.lastHeartbeatTime ?? '') >= undoneMs));
    if (silent.length > 0) return `agents that have not reported: ${namesOf(silent)}`;
    const broken = tunnels.filter(({ status }) => status?.phase !== 'Ready');
    if (broken.length > 0 || tunnels.length !== world.lab.status.nodes.length) return `tunnels: ${namesOf(broken)}`;
    const policies = await read('egresspolicies');
    const unprogrammed = policies.filter((policy) => !isTrue(policy, 'Programmed'));
    // Two policies may ask for EIPs of which one is taken; then the second has to wait, and says so.
    const waiting = unprogrammed.filter((policy) => !policy.metadata.name.startsWith('churn-'));
    if (waiting.length > 0) return `policies not programmed: ${namesOf(waiting)}`;
    const isTakenFrom = ({ status: recorded }: Served, { metadata, status }: Served) =>
      metadata.name !== recorded?.node &&
      status?.report?.eips?.some(({ ip, epoch }) => ip === recorded?.eip?.ipv4 && epoch > (recorded?.epoch ?? 0));
    const unrecorded = policies.filter((policy) => tunnels.some((tunnel) => isTakenFrom(policy, tunnel)));
    if (unrecorded.length > 0) return `policies whose owner is not recorded: ${namesOf(unrecorded)}`;
    const known = new Set(policies.map(({ metadata }) => metadata.name));
    const orphans = (await read('egressendpointslices')).filter(({ metadata }) =>
      metadata.ownerReferences?.some(({ name }) => !known.has(name)),
    );
    return orphans.length > 0 ? `endpoint slices without a policy: ${namesOf(orphans)}` : '';
  };

  /**
   * Deletes the pods of ours that the kubelet lets rest because they have died too often, and tells which: it waits ever longer, in
   * the end five minutes, before it starts one again, and somebody who wants it back does this.
   */
  const replaceResting = async (): Promise<string[]> => {
    const isResting = '@.status.containerStatuses[0].state.waiting.reason=="CrashLoopBackOff"';
    const path = `jsonpath={range .items[?(${isResting})]}{.metadata.name} {end}`;
    const own = ['-n', 'sallyport', '--request-timeout=5s'];
    const names = (await world.lab.kubectl([...own, 'get', 'pods', '-o', path])).split(' ').filter(Boolean);
    if (names.length > 0) await world.lab.kubectl([...own, 'delete', 'pod', '--wait=false', ...names]);
    return names;
  };

  const memoryOfAgents = (): number => {
    const agents = world.lab.status.nodes.flatMap(({ name }) =>
      processesOn(instanceOf(world.lab.name), name, agentPattern),
    );
    return Math.round(agents.reduce((sum, { pid }) => sum + residentMegabytes(pid), 0));
  };
});

const apiVersion = 'egressgateway.spidernet.io/v1beta1';
const namesOf = (objects: readonly Served[]): string => objects.map(({ metadata }) => metadata.name).join(', ');

/** Memory of a process, from proc(5). */
const residentMegabytes = (pid: number): number => {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
};

interface Served {
  readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly name: string }[] };
  readonly status?: {
    readonly phase?: string;
    readonly lastHeartbeatTime?: string;
    readonly report?: { readonly eips?: readonly { readonly ip: string; readonly epoch: number }[] };
    readonly eip?: { readonly ipv4?: string };
    readonly node?: string;
    readonly epoch?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
