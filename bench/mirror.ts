/**
 * What it costs to mirror connections: short TCP connections through a gateway node, all of them translated, and the processor time
 * of its mirror and of its successor's; then how long a take-over takes that has to make many connections. Needs root; everything
 * happens in network namespaces. Processor time is meaningful on a busy machine too.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MirrorThread } from '../src/agent/mirror/mirror-thread.ts';
import type { MirrorStats } from '../src/agent/mirror/port.ts';
import { createConnections } from '../src/dataplane/conntrack/connections.ts';
import { sample, sampleConnection } from '../src/dataplane/conntrack/testing/connections-conformance.ts';
import { loadLibc } from '../src/dataplane/libc.ts';
import { eventually } from '../src/runtime/testing/eventually.ts';
import { type Namespace, openNamespace } from '../test/kernel/namespace.ts';

const PORT = 7792;
const SERVER = '10.9.0.200';
const SECONDS = 10;
const addresses = new Map([
  ['a', '192.200.0.1'],
  ['b', '192.200.0.2'],
]);

/** One node in its namespace: prints a line of JSON a second. */
const beNode = async (node: string): Promise<void> => {
  let stats: MirrorStats | undefined;
  const data = { node, address: addresses.get(node) ?? '', port: PORT, keys: [new Uint8Array(32)] as const };
  const thread = new MirrorThread(data, {
    stats: (now) => {
      stats = now;
    },
    refused: (why) => console.error(why),
    failed: (error) => console.error(error),
  });
  await thread.listening();
  const owned = node === 'a' ? [{ ips: [sample[4].eip], successors: ['b'] }] : [];
  thread.set({ owned, awaited: [], addresses, replyMark: undefined });
  setInterval(() => {
    const { user, system } = process.cpuUsage();
    console.log(JSON.stringify({ cpuMs: (user + system) / 1_000, rssMb: process.memoryUsage.rss() / 1e6, ...stats }));
  }, 1_000);
};

/** Makes connections in the namespace that it runs in, and says how long it took. */
const takeMany = async (count: number): Promise<void> => {
  const connections = createConnections({ libc: await loadLibc(), timeouts: () => ({ tcp: 600, udp: 60 }) });
  const all = Array.from({ length: count }, (_, index) => sampleConnection({ port: 1_024 + index }));
  const before = process.cpuUsage();
  connections.put(all);
  const { user, system } = process.cpuUsage(before);
  console.log(`${count} connections made: ${((user + system) / 1_000).toFixed(0)} ms of processor time`);
};

interface Line {
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly mirrored?: number;
  readonly held?: number;
  readonly lagSeconds?: number;
}

const measure = async (): Promise<void> => {
  await using client = await openNamespace('bench-client');
  await using a = await openNamespace('bench-a');
  await using b = await openNamespace('bench-b');
  await using outside = await openNamespace('bench-outside');
  await a.ip(
    `link add in type veth peer name eth0 netns ${client.name}`,
    'link set in up',
    'addr add 10.244.1.1/24 dev in',
  );
  await a.ip(
    `link add out type veth peer name eth0 netns ${outside.name}`,
    'link set out up',
    'addr add 10.9.0.11/24 dev out',
  );
  await a.ip(
    `link add way type veth peer name way netns ${b.name}`,
    'link set way up',
    'addr add 192.200.0.1/24 dev way',
  );
  await b.ip('link set way up', 'addr add 192.200.0.2/24 dev way');
  await client.ip('link set eth0 up', 'addr add 10.244.1.2/24 dev eth0', 'route add default via 10.244.1.1');
  await outside.ip('link set eth0 up', `addr add ${SERVER}/24 dev eth0`, `route add ${sample[4].eip} via 10.9.0.11`);
  await a.must('sysctl', '-q', '-w', 'net.ipv4.ip_forward=1');
  const rules = `table inet translate {
  chain arrive { type filter hook prerouting priority mangle; iifname "in" ct state new ct mark set 0x27000011; }
  chain leave { type nat hook postrouting priority srcnat; oifname "out" meta l4proto tcp snat ip to ${sample[4].eip}; }
}`;
  const { code, stderr } = await a.programs.run(['nft', '-f', '-'], { input: rules });
  if (code !== 0) throw new Error(stderr);

  const stop = new AbortController();
  const running: Promise<unknown>[] = [];
  const start = (
    namespace: Namespace,
    onLine: (line: string) => void,
    file: string,
    ...args: readonly string[]
  ): AbortController => {
    const own = new AbortController();
    stop.signal.addEventListener('abort', () => own.abort());
    running.push(namespace.programs.follow([process.execPath, file, ...args], onLine, own.signal));
    return own;
  };
  const here = import.meta.filename;
  const talk = join(import.meta.dirname, '../test/kernel/talk.ts');
  const latest: Partial<Record<'a' | 'b', Line>> = {};
  try {
    let isListening = false;
    start(
      outside,
      (line) => {
        isListening ||= line === 'listening';
      },
      talk,
      'server',
      SERVER,
    );
    for (const [name, namespace] of [
      ['a', a],
      ['b', b],
    ] as const) {
      start(
        namespace,
        (line) => {
          latest[name] = JSON.parse(line);
        },
        here,
        'node',
        name,
      );
    }
    await eventually('everything runs', () => isListening && latest.a !== undefined && latest.b !== undefined);
    const idle = await watch(latest);
    console.log(`idle: owner ${idle.a.toFixed(2)} %, successor ${idle.b.toFixed(2)} % of a core`);
    for (const rate of [200, 500, 1_000]) {
      let made = 0;
      const visiting = start(
        client,
        (line) => {
          made = Number(line);
        },
        talk,
        'visit',
        SERVER,
        String(rate),
      );
      await eventually('connections are made', () => made > rate);
      const before = made;
      const startedAt = performance.now();
      const used = await watch(latest);
      const reached = ((made - before) * 1_000) / (performance.now() - startedAt);
      visiting.abort();
      console.log(
        `${reached.toFixed(0)} new connections/s (of ${rate}): owner ${used.a.toFixed(1)} %, successor ${used.b.toFixed(1)} % of a core; ` +
          `per 1,000/s: ${((used.a * 1_000) / reached).toFixed(1)} % and ${((used.b * 1_000) / reached).toFixed(1)} %; ` +
          `lag ${latest.a?.lagSeconds} s, ${latest.a?.rssMb.toFixed(0)} MB`,
      );
    }
    for (const count of [1_000, 10_000, 50_000]) {
      console.log((await b.must(process.execPath, here, 'take', String(count))).trim());
      await b.must('conntrack', '-F');
    }
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
};

/** Percent of a core that each node used, over some seconds. */
const watch = async (
  latest: Readonly<Partial<Record<'a' | 'b', Line>>>,
): Promise<{ readonly a: number; readonly b: number }> => {
  const [beforeA, beforeB] = [latest.a?.cpuMs ?? 0, latest.b?.cpuMs ?? 0];
  await delay(SECONDS * 1_000);
  const percent = (line: Line | undefined, before: number): number => ((line?.cpuMs ?? 0) - before) / (SECONDS * 10);
  return { a: percent(latest.a, beforeA), b: percent(latest.b, beforeB) };
};

const [role, argument = ''] = process.argv.slice(2);
if (role === 'node') await beNode(argument);
else if (role === 'take') await takeMany(Number(argument));
else await measure();
