/**
 * How many packets leave with an address that is not the EIP of their policy while all agents are killed and started anew, again
 * and again, and clients on every kind of node ask over new connections and over kept ones. `leaks.ts [RESTARTS]`. The promise is
 * none, and no question that fails. For pod starts see `SALLYPORT_STARTS` in test/e2e/strict-start.test.ts.
 */
import { loadavg } from 'node:os';
import { ports } from '../lab/cluster/shape.ts';
import { agentPattern } from '../lab/faults/processes.ts';
import type { Tally } from '../lab/inside/client.ts';
import { EgressWorld, eip, ways } from '../test/e2e/egress-world.ts';

const wanted = Number(process.argv[2] ?? 200);
const own = eip(100);
const labels = { team: 'shop' };
const clients = ['gateway-1', 'worker-1', 'worker-2'].map((node) => ({ name: `on-${node}`, namespace: 'shop', node }));

const world = await EgressWorld.start('bench-leaks');
try {
  await world.clients(...clients.map((client) => ({ ...client, labels })));
  await world.gateway('main', { ipv4: [own.ipv4], ipv6: [own.ipv6] });
  await world.policy('shop/all', {
    egressGatewayName: 'main',
    egressIP: own,
    appliedTo: { podSelector: { matchLabels: labels } },
  });
  await world.untilPolicy('shop/all', 'Programmed', 'True');
  for (const { name } of clients) await world.untilSource(name, own);
  await world.lab.resetCounts();
  if (!(await judge(await restart()))) process.exitCode = 1;
} finally {
  await world.stop();
}

/** Kills and replaces all agents at once, as often as it takes, and returns how the questions went meanwhile. */
async function restart() {
  const streams = [];
  for (const { name } of clients) {
    for (const way of ways) {
      for (const isKept of way.transport === 'tcp' ? [false, true] : [false]) {
        streams.push(await world.client(name).stream(world.question(way), { everyMs: 50, isKept }));
      }
    }
  }
  const startedAtMs = performance.now();
  let restarts = 0;
  while (restarts < wanted) {
    for (const { name } of world.lab.status.nodes) await world.lab.kill(name, agentPattern);
    // A new pod, because the kubelet waits ever longer before it starts a container again that has died often.
    await world.lab.kubectl(['-n', 'sallyport', 'delete', 'pod', '-l', 'app.kubernetes.io/component=agent']);
    await world.lab.kubectl(['-n', 'sallyport', 'rollout', 'status', 'daemonset', '--timeout=90s']);
    restarts += world.lab.status.nodes.length;
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const tallies = [];
  for (const stream of streams) tallies.push(await stream.stop());
  return { restarts, seconds, tallies };
}

/** Prints what was seen; true when no packet was foreign and no question failed. */
async function judge({ restarts, seconds, tallies }: Awaited<ReturnType<typeof restart>>): Promise<boolean> {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const strangers = new Set(await world.strangersAsking(own));
  const asked = (await world.lab.packets()).filter(({ port }) => port === ports.tcp || port === ports.udp);
  const packetsOf = (isForeign: boolean) =>
    sum(asked.filter(({ source }) => strangers.has(source) === isForeign).map(({ packets }) => packets));
  const values = (counts: Readonly<Record<string, number>>) => sum(Object.values(counts));
  const failed = sum(tallies.map(({ failures }) => values(failures)));
  const answered = sum(tallies.map(({ answers }) => values(answers)));
  const reopened = sum(tallies.map((tally) => tally.reopened));
  const rows = [
    `${restarts} agents killed and started anew in ${seconds.toFixed(0)} s, load ${loadavg()[0]?.toFixed(1)}`,
    `  questions    ${answered} answered, ${failed} failed, ${reopened} connections opened again`,
    ...failuresIn(tallies).map(([why, times]) => `    ${times} times ${why}`),
    `  packets      ${packetsOf(false)} with the EIP, ${packetsOf(true)} with others ${[...strangers].join(', ')}`,
  ];
  console.log(rows.join('\n'));
  return packetsOf(false) > 0 && strangers.size === 0 && failed === 0;
}

/** Why questions failed, and how often, over all clients. */
function failuresIn(tallies: readonly Tally[]): [string, number][] {
  const times = new Map<string, number>();
  for (const { failures } of tallies) {
    for (const [why, count] of Object.entries(failures)) times.set(why, (times.get(why) ?? 0) + count);
  }
  return [...times].toSorted(([a], [b]) => a.localeCompare(b));
}
