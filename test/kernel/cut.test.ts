/**
 * A node boots, and its pod speaks before the agent has made the rules: TCP, UDP and ping, both families. Real packets, in the
 * network of nft-network.ts. Once the rules are there and what began without them is cut, nothing of the pod leaves with the
 * address of its node any more, and what is rightly outside the policy goes on.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Ip } from '../../src/core/ip/index.ts';
import type { CutOf } from '../../src/core/node/existing.ts';
import { createCut } from '../../src/dataplane/conntrack/cut.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import type { Namespace } from './namespace.ts';
import { addresses, openNetwork } from './nft-network.ts';
import { gateway, tableOf, worker } from './nft-tables.ts';

const families = [4, 6] as const;
const TALK = join(import.meta.dirname, 'talk.ts');

/** Counts what the pod says with the address of its node: not what the node itself answers to a server that goes on speaking. */
const WATCH = `table inet foreign {
  counter strays { }
  chain arrive {
    type filter hook input priority filter;
    ip saddr ${addresses[4].worker} goto said
    ip6 saddr ${addresses[6].worker} goto said
  }
  chain said {
    tcp flags & rst == 0 counter name strays
    udp dport 80 counter name strays
    icmp type echo-request counter name strays
    icmpv6 type echo-request counter name strays
  }
}`;
const foreign = async (outside: Namespace): Promise<number> =>
  Number(/packets (\d+)/.exec(await outside.must('nft', 'list', 'counter', 'inet', 'foreign', 'strays'))?.[1]);

test('a pod that spoke before the agent of its node goes on with the EIP: UDP and ping at once, TCP after a reset', async (t) => {
  await using network = await openNetwork('cut');
  const { pod, outside, gateway: other } = network;
  await outside.nft(WATCH);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const ended: Promise<unknown>[] = [];
  const heard = new Map<string, number>();
  const broken: string[] = [];
  const run = (namespace: Namespace, argv: readonly string[], onLine: (line: string) => void): void =>
    void ended.push(namespace.programs.follow(argv, onLine, stop.signal));
  const peers: string[] = [];
  for (const family of families) {
    for (const [place, at] of [
      [outside, addresses[family].outside],
      [other, addresses[family].gateway],
    ] as const) {
      run(place, [process.execPath, TALK, 'server', at], (line) => peers.push(line));
    }
  }
  await eventually('servers listen', () => peers.filter((line) => line === 'listening').length === 4);
  const client = (name: string, argv: readonly string[]): void =>
    run(pod, argv, (line) => {
      if (line === 'heard' || line.includes('bytes from')) heard.set(name, (heard.get(name) ?? 0) + 1);
      else if (/^(broken|closed)/.test(line)) broken.push(`${name}: ${line}`);
    });
  for (const family of families) {
    const { outside: out, gateway: inside } = addresses[family];
    client(`tcp ${family}`, [process.execPath, TALK, 'pong', out, String(4000 + family)]);
    client(`wait ${family}`, [process.execPath, TALK, 'pour', out, String(4030 + family)]);
    client(`udp ${family}`, [process.execPath, TALK, 'ask', out, String(4010 + family)]);
    client(`ping ${family}`, ['ping', '-n', '-i', '0.05', out]);
    client(`inside ${family}`, [process.execPath, TALK, 'pong', inside, String(4020 + family)]);
  }
  await eventually('everything is answered', () => heard.size === 10);
  assert.ok((await foreign(outside)) > 0, 'with the address of the node');

  const nodes = { cluster4: new Map([['10.9.0.12', '']]), cluster6: new Map([['fd09::12', '']]) };
  await network.gatewayTable.apply(tableOf(gateway));
  await network.workerTable.apply(tableOf({ ...worker, ...nodes }));
  const before = await foreign(outside);
  await eventually('rules alone change nothing', async () => (await foreign(outside)) > before + 20);

  // As src/core/node/existing.ts says it for such a pod.
  const [pods, covered] = [families.map((one) => addresses[one].pod), families.map((one) => addresses[one].outside)];
  const has = (list: readonly string[], ip: Ip): boolean => list.includes(ip);
  const cut = createCut(await loadLibc());
  const cutOf: CutOf = (source) => (has(pods, source) ? (to, mark) => has(covered, to) && mark === 0 : undefined);
  const count = inNamespace(network.worker.name, () => cut(cutOf));
  assert.equal(count, 8, 'TCP, UDP and ping, both families');
  const [left, counts] = [await foreign(outside), new Map(heard)];
  const goOn = ['udp 4', 'udp 6', 'ping 4', 'ping 6', 'inside 4', 'inside 6'];
  await eventually('UDP, ping and what is inside the cluster go on', () =>
    goOn.every((name) => (heard.get(name) ?? 0) > (counts.get(name) ?? 0) + 20),
  );
  const resets = families.flatMap((one) => ['tcp', 'wait'].map((kind) => `${kind} ${one}: broken: read ECONNRESET`));
  await eventually('TCP is reset, also where the pod only listens', () => new Set(resets).isSubsetOf(new Set(broken)));
  assert.deepEqual(broken.filter((line) => line.includes('broken')).toSorted(), resets.toSorted());
  assert.equal(await foreign(outside), left, 'no packet of the pod has left with the address of its node since');
  assert.equal(
    inNamespace(network.worker.name, () => cut(cutOf)),
    0,
  );
  for (const family of families) {
    assert.ok(peers.includes(`udp ${addresses[family].eip} ${4010 + family}`), 'the server hears the EIP');
  }
  stop.abort();
  await Promise.allSettled(ended);
});
