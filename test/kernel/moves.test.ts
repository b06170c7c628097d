/**
 * An EIP is moving: questions leave through node A, and answers come to node B, which knows none of their connections. Real
 * packets; the tunnel is a wire.
 *
 *   client 10.244.2.2 --+--in-- A 10.9.0.11 --+-- outside 10.9.0.200, which takes B for the owner of 10.9.0.100
 *                       |       | tunnel      |
 *                       '--in-- B 10.9.0.12 --'
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { type Ip, parseIp } from '../../src/core/ip/index.ts';
import { createGateTables, type GateSets, type Hold, openGateSets } from '../../src/dataplane/gate/gate.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { renderTable } from '../../src/dataplane/nft/render.ts';
import { TABLE } from '../../src/dataplane/nft/stored.ts';
import { settings } from '../../src/dataplane/nft/testing/tables.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import { type Namespace, openNamespace } from './namespace.ts';

const { device } = settings;
const ip = (text: string): Ip => {
  const parsed = parseIp(text);
  return parsed.ok ? parsed.value : assert.fail(text);
};
const eips = [ip('10.9.0.100'), ip('fd09::e:100')] as const;
const outsides = ['10.9.0.200', 'fd09::200'] as const;
const hops = { a: [ip('192.200.0.11'), ip('fd92::11')], b: [ip('192.200.0.12'), ip('fd92::12')] } as const;
const minuteMs = 60_000;
type Label = 'a' | 'b';
const numbers = { a: 11, b: 12 } as const;

/** A gateway node on the wire of the outside and on one of the client, with the EIP and the tables of the gate. */
const openGateway = async (label: Label, outside: Namespace, client: Namespace) => {
  const number = numbers[label];
  const node = await openNamespace(`moves-${label}`);
  await outside.ip(
    `link add to-${label} type veth peer name eth0 netns ${node.name}`,
    `link set to-${label} master lan up`,
  );
  await node.ip(
    'link set eth0 up',
    `addr add 10.9.0.${number}/24 dev eth0`,
    `-6 addr add fd09::${number}/64 dev eth0 nodad`,
    'link add egw-eip type bridge',
    'link set egw-eip up',
    `addr add ${eips[0]}/32 dev egw-eip`,
    `-6 addr add ${eips[1]}/128 dev egw-eip nodad`,
  );
  await node.must('sysctl', '-q', '-w', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  // The client is found by the mark of replies alone, as a pod behind the tunnel is.
  await node.ip(
    `link add in type veth peer name to-${label} netns ${client.name}`,
    'link set in up',
    `addr add 10.244.${number}.1/24 dev in`,
    `-6 addr add fd44:${number}::1/64 dev in nodad`,
    'rule add pref 94 fwmark 0x27000011 lookup 2700017',
    '-6 rule add pref 94 fwmark 0x27000011 lookup 2700017',
    `route add 10.244.2.2 via 10.244.${number}.2 dev in table 2700017`,
    `-6 route add fd44:2::2 via fd44:${number}::2 dev in table 2700017`,
  );
  await client.ip(
    `link set to-${label} up`,
    `addr add 10.244.${number}.2/24 dev to-${label}`,
    `-6 addr add fd44:${number}::2/64 dev to-${label} nodad`,
  );
  const loose = ['all', 'eth0', 'in'].map((name) => `net.ipv4.conf.${name}.rp_filter=0`);
  await node.must('sysctl', '-q', '-w', ...loose);
  await client.must('sysctl', '-q', '-w', 'net.ipv4.conf.all.rp_filter=0', `net.ipv4.conf.to-${label}.rp_filter=0`);
  await node.nft(`table inet translate {
  chain pass { type filter hook forward priority filter; iifname "in" ct state new ct mark set 0x27000011; }
  chain leave {
    type nat hook postrouting priority srcnat;
    iifname "in" snat ip to ${eips[0]}
    iifname "in" snat ip6 to ${eips[1]}
  }
}`);
  await node.nft(renderTable({ ...settings, isGated: true }));
  await node.nft(`add element inet ${TABLE} sent4 { ${eips[0]} }; add element inet ${TABLE} sent6 { ${eips[1]} }`);
  // Its wire is none of the tunnel's, past which a reply may only go to pods of the node.
  const client4 = `add element inet ${TABLE} pod4 { 10.244.2.2 : 0x25000001 }`;
  await node.nft(`${client4}; add element inet ${TABLE} pod6 { fd44:2::2 : 0x25000001 }`);
  await createGateTables(node.programs, device).prepare();
  const libc = await loadLibc();
  let signature = 1;
  return { node, gateSets: inNamespace(node.name, () => openGateSets(libc, () => signature++)) };
};

/** Both EIPs, with the other node of the move if there is one. */
const holds = (isAnswered: boolean, via: readonly Ip[] = []): readonly Hold[] =>
  eips.map((eip, index) => {
    const hop = via[index];
    return { ip: eip, epoch: 1, isAnswered, ...(hop && { other: { via: hop, forMs: minuteMs } }) };
  });

describe('an EIP that moves', () => {
  const opened: Namespace[] = [];
  const latches: GateSets[] = [];
  after(async () => {
    for (const gateSets of latches) gateSets.close();
    for (const namespace of opened) await namespace.close();
  });

  const openWorld = async () => {
    const outside = await openNamespace('moves-outside');
    opened.push(outside);
    const client = await openNamespace('moves-client');
    opened.push(client);
    await outside.ip('link add lan type bridge', 'link set lan up');
    await outside.ip(`addr add ${outsides[0]}/24 dev lan`, `-6 addr add ${outsides[1]}/64 dev lan nodad`);
    await client.ip('addr add 10.244.2.2/32 dev lo', '-6 addr add fd44:2::2/128 dev lo nodad');
    const a = await openGateway('a', outside, client);
    opened.push(a.node);
    const b = await openGateway('b', outside, client);
    opened.push(b.node);
    latches.push(a.gateSets, b.gateSets);
    await a.node.ip(`link add ${device} type veth peer name ${device} netns ${b.node.name}`);
    for (const [{ node }, own, other] of [[a, 11, 12] as const, [b, 12, 11] as const]) {
      await node.ip(
        `link set ${device} address 66:00:00:00:00:${own} up`,
        `addr add 192.200.0.${own}/16 dev ${device}`,
        `-6 addr add fd92::${own}/64 dev ${device} nodad`,
        // Nobody asks for neighbours in the tunnel.
        `neigh add 192.200.0.${other} lladdr 66:00:00:00:00:${other} dev ${device} nud permanent`,
        `-6 neigh add fd92::${other} lladdr 66:00:00:00:00:${other} dev ${device} nud permanent`,
      );
      await node.must('sysctl', '-q', '-w', `net.ipv4.conf.${device}.rp_filter=0`);
    }
    await outside.nft(`table inet told {
  chain input {
    type filter hook input priority filter;
    icmp type destination-unreachable counter
    icmpv6 type destination-unreachable counter
    tcp flags & rst == rst counter
  }
}`);
    /** Questions leave through a node, and answers come to one. */
    const route = async (questions: Label, answers: Label): Promise<void> => {
      const [ask, answer] = [numbers[questions], numbers[answers]];
      await client.ip(
        `route replace default via 10.244.${ask}.1 src 10.244.2.2`,
        `-6 route replace default via fd44:${ask}::1 src fd44:2::2`,
      );
      await outside.ip(
        `route replace ${eips[0]} via 10.9.0.${answer}`,
        `-6 route replace ${eips[1]} via fd09::${answer}`,
      );
    };
    await route('a', 'b');
    return {
      outside,
      client,
      a: a.gateSets,
      b: b.gateSets,
      route,
      /** Connections from this port that a node remembers although they are over. */
      remembered: async (label: Label, port: number): Promise<number> => {
        const { node } = label === 'a' ? a : b;
        const lists = await Promise.all(
          ['ipv4', 'ipv6'].map((family) =>
            node.must('conntrack', '-L', '-f', family, '-p', 'tcp', '--sport', `${port}`),
          ),
        );
        return lists.join('').match(/TIME_WAIT/g)?.length ?? 0;
      },
      /** Whether the client gets an answer from the outside. */
      ping: async (to: string) => (await client.programs.run(['ping', '-n', '-c', '1', '-W', '1', to])).code === 0,
      /** How often somebody refused a packet of the outside. */
      refusals: async () => {
        const text = await outside.must('nft', 'list', 'table', 'inet', 'told');
        return [...text.matchAll(/counter packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
      },
    };
  };

  let world: Awaited<ReturnType<typeof openWorld>>;
  /** Both nodes know that it moves. */
  const move = async (): Promise<void> => {
    assert.equal(world.a.hold(holds(false, hops.b), minuteMs), undefined);
    assert.equal(world.b.hold(holds(true, hops.a), minuteMs), undefined);
    // Neighbours get to know each other: the first packet may be lost for that alone.
    for (const to of outsides) await eventually(`an answer from ${to}`, () => world.ping(to));
  };
  before(async () => {
    world = await openWorld();
  });
  afterEach(() => world.route('a', 'b'));

  test('answers that come to the new node are given to the old one, which knows their connections; only while it moves', async () => {
    await move();
    for (const to of outsides) assert.equal(await world.ping(to), true);
    for (const isAnswered of [true, false]) {
      // Either of them may have ended first.
      const gateSets = isAnswered ? world.b : world.a;
      gateSets.hold(holds(isAnswered), minuteMs);
      for (const to of outsides) assert.equal(await world.ping(to), false);
      gateSets.hold(holds(isAnswered, isAnswered ? hops.a : hops.b), minuteMs);
      for (const to of outsides) assert.equal(await world.ping(to), true);
    }
  });

  test('what neither of them knows ends with the second one, and nobody refuses it', async () => {
    await move();
    const send = async (to: string) => world.outside.must('bash', '-c', `echo stray > /dev/udp/${to}/7777`);
    const before = await world.refusals();
    for (const eip of eips) await send(eip);
    // A packet behind it on the same way: when it is answered, the stray ones have had their time.
    for (const to of outsides) assert.equal(await world.ping(to), true);
    assert.equal(await world.refusals(), before);
    world.b.hold(holds(true), minuteMs);
    for (const eip of eips) await send(eip);
    await eventually('a refusal by the new node alone', async () => (await world.refusals()) >= before + eips.length);
  });

  test('is answered for by its owner all the while', async () => {
    await move();
    for (const eip of eips) {
      const { code } = await world.outside.programs.run(['ping', '-n', '-c', '1', '-W', '1', eip]);
      assert.equal(code, 0, eip);
    }
  });

  test('is forgotten by the kernel itself when nobody says so any more', async () => {
    await move();
    const brief = holds(true, hops.a).map((hold) => ({
      ...hold,
      other: { via: hold.other?.via ?? hold.ip, forMs: 1 },
    }));
    world.b.hold(brief, minuteMs);
    for (const to of outsides) await eventually('the end of the move', async () => !(await world.ping(to)));
  });

  test('a port that was used a minute ago: the answer is for who waits for it, not for who remembers the old connection', async (context) => {
    await move();
    const stop = new AbortController();
    context.after(() => stop.abort());
    const talk = (namespace: Namespace, onLine: (line: string) => void, ...args: readonly string[]): void => {
      const argv = [process.execPath, join(import.meta.dirname, 'talk.ts'), ...args];
      void namespace.programs.follow(argv, onLine, stop.signal);
    };
    const served: string[] = [];
    for (const to of outsides) talk(world.outside, (line) => served.push(line), 'server', to);
    await eventually('servers listen', () => served.filter((line) => line === 'listening').length === 2);
    for (const [index, [questions, answers]] of (
      [
        ['a', 'b'],
        ['b', 'a'],
      ] as const
    ).entries()) {
      const port = 5000 + index;
      const use = async (asked: Label, answered: Label, kind: string, until: string): Promise<void> => {
        await world.route(asked, answered);
        for (const to of outsides) await eventually(`an answer from ${to}`, () => world.ping(to));
        const heard = outsides.map(() => new Set<string>());
        for (const [family, to] of outsides.entries()) {
          talk(world.client, (line) => heard[family]?.add(line), kind, to, `${port}`);
        }
        await eventually(`${kind} of both families`, () => heard.every((lines) => lines.has(until)));
      };
      await use(answers, answers, 'bye', 'closed');
      await eventually('both are over', async () => (await world.remembered(answers, port)) === 2);
      await use(questions, answers, 'pong', 'heard');
    }
  });
});
