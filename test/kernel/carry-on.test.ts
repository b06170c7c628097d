/**
 * Connections that go on through another gateway node, because it has been told about them: real packets, no tunnel and no
 * table of ours. Only gateway node A translates, and to another port than the client has; B has nothing but what it is given.
 *
 *   client 10.244.1.2 --+-- A 10.9.0.11 --+-- server 10.9.0.200, which sees 10.9.0.100
 *                       '-- B 10.9.0.12 --'
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Connection } from '../../src/dataplane/conntrack/connection.ts';
import { createConnections } from '../../src/dataplane/conntrack/connections.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import { type Namespace, openNamespace } from './namespace.ts';

const server = { 4: '10.9.0.200', 6: 'fd09::200' } as const;
const kinds = ['pong', 'pour', 'drip'] as const;

const gateway = async (label: string, number: number, client: Namespace, outside: Namespace): Promise<Namespace> => {
  const node = await openNamespace(label);
  await client.ip(
    `link add to-${label} type veth peer name in netns ${node.name}`,
    `link set to-${label} master lan up`,
  );
  await outside.ip(
    `link add to-${label} type veth peer name out netns ${node.name}`,
    `link set to-${label} master lan up`,
  );
  await node.ip(
    'link set in up',
    'link set out up',
    `addr add 10.244.1.${number}/24 dev in`,
    `-6 addr add fd44:1::${number}/64 dev in nodad`,
    `addr add 10.9.0.${number}/24 dev out`,
    `-6 addr add fd09::${number}/64 dev out nodad`,
  );
  await node.must('sysctl', '-q', '-w', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  return node;
};

/** Packets both ways take this gateway node from now on. */
const useGateway = async (number: number, client: Namespace, outside: Namespace): Promise<void> => {
  await client.ip(`route replace default via 10.244.1.${number}`, `-6 route replace default via fd44:1::${number}`);
  await outside.ip(`route replace 10.9.0.100 via 10.9.0.${number}`, `-6 route replace fd09::e:100 via fd09::${number}`);
};

test('remapped ports, pure downloads and UDP go on through a node that got their connections, of both families', async (t) => {
  await using client = await openNamespace('carry-client');
  await using outside = await openNamespace('carry-outside');
  for (const [namespace, ipv4, ipv6] of [
    [client, '10.244.1.2', 'fd44:1::2'],
    [outside, server[4], server[6]],
  ] as const) {
    await namespace.ip('link add lan type bridge', 'link set lan up', `addr add ${ipv4}/24 dev lan`);
    await namespace.ip(`-6 addr add ${ipv6}/64 dev lan nodad`);
  }
  await using a = await gateway('carry-a', 11, client, outside);
  await using b = await gateway('carry-b', 12, client, outside);
  await a.nft(`table inet translate {
  chain arrive { type filter hook prerouting priority mangle; iifname "in" ct state new ct mark set 0x27000011; }
  chain leave {
    type nat hook postrouting priority srcnat;
    oifname "out" meta l4proto { tcp, udp } snat ip to 10.9.0.100:5000-5999
    oifname "out" meta l4proto { tcp, udp } snat ip6 to [fd09::e:100]:5000-5999
  }
}`);
  // A kernel translates only where somebody has a chain of that type, as every gateway node has; and drops what it does not know.
  await b.must(
    'nft',
    'add table inet watch; add chain inet watch leave { type nat hook postrouting priority srcnat; }; ' +
      'add chain inet watch pass { type filter hook forward priority filter; }; ' +
      'add rule inet watch pass ct state != established drop',
  );
  await useGateway(11, client, outside);

  const stop = new AbortController();
  t.after(() => stop.abort());
  const ended: Promise<unknown>[] = [];
  const talk = (namespace: Namespace, onLine: (line: string) => void, ...args: readonly string[]): void => {
    const argv = [process.execPath, join(import.meta.dirname, 'talk.ts'), ...args];
    ended.push(namespace.programs.follow(argv, onLine, stop.signal));
  };
  const peers: string[] = [];
  const heard = new Map<string, number>();
  const broken: string[] = [];
  for (const family of [4, 6] as const) talk(outside, (line) => peers.push(line), 'server', server[family]);
  await eventually('servers listen', () => peers.filter((line) => line === 'listening').length === 2);
  for (const family of [4, 6] as const) {
    for (const [index, kind] of kinds.entries()) {
      const name = `${kind} ${family}`;
      const onLine = (line: string): void => {
        if (line === 'heard') heard.set(name, (heard.get(name) ?? 0) + 1);
        else broken.push(`${name}: ${line}`);
      };
      talk(client, onLine, kind, server[family], String(4000 + 10 * family + index));
    }
  }
  const libc = await loadLibc();
  const connections = createConnections({ libc, timeouts: () => ({ tcp: 600, udp: 60 }) });
  const copies = (): Connection[] => {
    const found: Connection[] = [];
    inNamespace(a.name, () => connections.list((connection) => found.push(connection)));
    return found;
  };
  // UDP is taken for a connection after two seconds of talk.
  await eventually('all connections are there', () => copies().length === 6);
  const outcome = inNamespace(b.name, () => connections.put(copies()));
  assert.deepEqual(outcome, { written: 6, refused: 0 });
  await useGateway(12, client, outside);
  await a.must('ip', 'link', 'set', 'in', 'down');
  await a.must('ip', 'link', 'set', 'out', 'down');
  const before = new Map(heard);
  assert.equal(before.size, 6);
  await eventually('every connection goes on', () =>
    [...before].every(([name, count]) => (heard.get(name) ?? 0) > count + 20),
  );
  assert.deepEqual(broken, []);
  const seen = peers.filter((line) => line !== 'listening').map((line) => line.split(' '));
  assert.equal(seen.length, 6, 'nobody had to begin anew');
  for (const [, address, port] of seen) {
    assert.match(address ?? '', /^(10\.9\.0\.100|fd09::e:100)$/);
    assert.ok(Number(port) >= 5000, 'ports are remapped');
  }
  stop.abort();
  await Promise.allSettled(ended);
});
