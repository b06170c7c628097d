/**
 * A pod on a gateway node, whose EIP leaves that node and comes back: the node translates the pod's connections itself while it has the
 * EIP, and sends them through the tunnel while another node has it. No connection may notice. Real packets, real tables, a real tunnel.
 *
 *   pod 10.244.1.2 -- A 10.9.0.11 --.
 *                       | tunnel    +-- outside 10.9.0.200, which takes A or B for the owner of 10.9.0.100
 *                     B 10.9.0.12 --'
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Ip } from '../../src/core/ip/index.ts';
import type { TableElements } from '../../src/core/node/desired.ts';
import { KIND_MASK, markText, replyMark, SLOT_KIND } from '../../src/core/node/numbers.ts';
import { ip } from '../../src/core/testing/address.ts';
import type { Connection } from '../../src/dataplane/conntrack/connection.ts';
import { createConnections } from '../../src/dataplane/conntrack/connections.ts';
import { createDropStaleConnections, type Turned } from '../../src/dataplane/conntrack/stale-connections.ts';
import { createGateTables, type Hold, openGateSets } from '../../src/dataplane/gate/gate.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import type { Namespace } from './namespace.ts';
import { addresses, DEVICE, macs, type Network, openNetwork } from './nft-network.ts';
import { gateway, SLOT, SNAT, tableOf, worker } from './nft-tables.ts';

const minuteMs = 60_000;
const eips = [ip(addresses[4].eip), ip(addresses[6].eip)];
const hops = { a: [ip('192.200.0.11'), ip('fd92::11')], b: [ip('192.200.0.12'), ip('fd92::12')] } as const;
/** What other nodes mark packets back to A with, and slot 1 as a number. */
const BACK_TO_A = replyMark(0x11);
const slot = new Set([1]);
const nothing: Turned = { here: new Set(), elsewhere: new Set(), carried: new Set() };

const holds = (isAnswered: boolean, others: readonly Ip[] = []): readonly Hold[] =>
  eips.map((eip, index) => {
    const via = others[index];
    return { ip: eip, epoch: 1, isAnswered, ...(via && { other: { via, forMs: minuteMs } }) };
  });

/** What A has of its own and of the EIP, whoever owns it. */
const ready: Partial<TableElements> = {
  ...worker,
  eips4: new Map([[addresses[4].eip, '']]),
  eips6: new Map([[addresses[6].eip, '']]),
  slot_eip4: new Map([[SNAT, addresses[4].eip]]),
  slot_eip6: new Map([[SNAT, addresses[6].eip]]),
  vtep_node: new Map([[macs.gateway, markText(replyMark(0x12))]]),
};
const gated = (elements: Partial<TableElements>) => {
  const table = tableOf(elements);
  return { ...table, settings: { ...table.settings, isGated: true } };
};

/** Both nodes, as their agents would move the EIP between them. */
const openNodes = async (network: Network) => {
  const libc = await loadLibc();
  const [a, b] = [network.worker, network.gateway];
  await a.ip(
    'link add egw-eip type bridge',
    'link set egw-eip up',
    `addr add ${addresses[4].eip}/32 dev egw-eip`,
    `-6 addr add ${addresses[6].eip}/128 dev egw-eip nodad`,
  );
  const slotGoesTo = (way: string) => network.workerTable.apply(gated({ ...ready, slot_fwd: new Map([[SLOT, way]]) }));
  const elsewhere = worker.slot_fwd?.get(SLOT) ?? assert.fail();
  await slotGoesTo(SNAT);
  await network.gatewayTable.apply(gated(gateway));
  let signature = 1;
  const latchOf = async (node: Namespace) => {
    await createGateTables(node.programs, DEVICE).prepare();
    const gateSets = inNamespace(node.name, () => openGateSets(libc, () => signature++));
    return (held: readonly Hold[]) => assert.equal(gateSets.hold(held, minuteMs), undefined);
  };
  const real = createConnections({ libc, timeouts: () => ({ tcp: 600, udp: 60 }) });
  const forgetStrays = createDropStaleConnections(libc);
  const listed = (node: Namespace): Connection[] => {
    const found: Connection[] = [];
    inNamespace(node.name, () => real.list((connection) => found.push(connection)));
    return found;
  };
  return {
    holdAtA: await latchOf(a),
    holdAtB: await latchOf(b),
    answersGoTo: (node: 'a' | 'b') => {
      const at = node === 'a' ? 'worker' : 'gateway';
      return network.outside.ip(
        `route replace ${addresses[4].eip} via ${addresses[4][at]}`,
        `-6 route replace ${addresses[6].eip} via ${addresses[6][at]}`,
      );
    },
    leaveFromA: () => slotGoesTo(SNAT),
    leaveFromB: () => slotGoesTo(elsewhere),
    /** The connections of the owner, as the mirror says of them. */
    known: (owner: 'a' | 'b') =>
      listed(owner === 'a' ? a : b).map((connection) => {
        const isOfPodHere = (connection.mark & KIND_MASK) >>> 0 === SLOT_KIND;
        return isOfPodHere ? { ...connection, mark: BACK_TO_A } : connection;
      }),
    putAtA: (connections: readonly Connection[]) => inNamespace(a.name, () => real.put(connections, BACK_TO_A)),
    putAtB: (connections: readonly Connection[]) => inNamespace(b.name, () => real.put(connections)),
    turnAtA: (turned: Partial<Turned>) => inNamespace(a.name, () => forgetStrays({ ...nothing, ...turned })),
  };
};

/** A connection that was cut off is never heard again. */
const limitMs = 30_000;
const kinds = ['pong', 'pour', 'drip', 'ask'] as const;
const TALK = join(import.meta.dirname, 'talk.ts');

/** Connections of all kinds from the pod. */
const openTalks = async (network: Network, signal: AbortSignal) => {
  const heard = new Map<string, number>();
  const broken: string[] = [];
  const peers: string[] = [];
  const run = (namespace: Namespace, onLine: (line: string) => void, ...argv: readonly string[]): void => {
    void namespace.programs.follow(argv, onLine, signal);
  };
  const hear = (name: string): void => void heard.set(name, (heard.get(name) ?? 0) + 1);
  for (const family of [4, 6] as const) {
    run(network.outside, (line) => peers.push(line), process.execPath, TALK, 'server', addresses[family].outside);
  }
  await eventually('servers listen', () => peers.filter((line) => line === 'listening').length === 2);
  for (const family of [4, 6] as const) {
    const { outside } = addresses[family];
    for (const [index, kind] of kinds.entries()) {
      const name = `${kind} ${family}`;
      const onLine = (line: string) => (line === 'heard' ? hear(name) : void broken.push(`${name}: ${line}`));
      run(network.pod, onLine, process.execPath, TALK, kind, outside, String(4000 + 10 * family + index));
    }
    const onLine = (line: string) => (line.includes('bytes from') ? hear(`ping ${family}`) : undefined);
    run(network.pod, onLine, 'ping', '-n', '-i', '0.05', outside);
  }
  const goOn = async (what: string, names = [...heard.keys()]): Promise<void> => {
    const before = new Map(heard);
    const silent = () => names.filter((name) => (heard.get(name) ?? 0) < (before.get(name) ?? 0) + 10);
    await eventually(
      `every connection to go on ${what}`,
      () => silent().length === 0 || broken.length > 0,
      limitMs,
    ).catch(() => {});
    assert.deepEqual({ silent: silent(), broken }, { silent: [], broken: [] }, what);
  };
  await eventually('all of them to talk', () => heard.size === 2 * kinds.length + 2);
  return { goOn, names: () => peers.filter((line) => line !== 'listening') };
};

test('a pod on a gateway node: its connections go on when the EIP leaves that node, and when it comes back', async (t) => {
  await using network = await openNetwork('gwpod');
  const nodes = await openNodes(network);
  const stop = new AbortController();
  t.after(() => stop.abort());
  nodes.holdAtA(holds(true));
  nodes.holdAtB([]);
  await nodes.answersGoTo('a');
  const { goOn, names } = await openTalks(network, stop.signal);
  // UDP is taken for a connection after two seconds of talk.
  await eventually('the mirror to know all', () => nodes.known('a').length === 2 * kinds.length);
  const udp = ['ask 4', 'ask 6', 'drip 4', 'drip 6'];
  await network.sources();

  // By plan from A to B.
  nodes.putAtB(nodes.known('a'));
  nodes.holdAtB(holds(false));
  nodes.holdAtA(holds(false, hops.b));
  nodes.holdAtB(holds(true, hops.a));
  await goOn('while answers still come to A');
  await nodes.answersGoTo('b');
  await goOn('while A has not heard that B owns it', udp);
  await nodes.leaveFromB();
  nodes.turnAtA({ carried: slot });
  await goOn('through B');
  nodes.holdAtA([]);
  nodes.holdAtB(holds(true));
  nodes.turnAtA({ elsewhere: slot });
  await goOn('when A carries it no more');

  // By plan from B to A.
  nodes.holdAtA(holds(false));
  nodes.holdAtB(holds(false, hops.a));
  const told = nodes.known('b');
  assert.ok(told.length >= 2 * kinds.length);
  nodes.putAtA(told);
  nodes.holdAtA(holds(true, hops.b));
  await goOn('while answers still come to B', udp);
  await nodes.answersGoTo('a');
  await goOn('while the slot still leaves through B');
  await nodes.leaveFromA();
  nodes.turnAtA({ here: slot });
  await goOn('through A');
  nodes.holdAtB([]);
  nodes.holdAtA(holds(true));
  await goOn('when B carries it no more');

  // The uplink of A is lost: nobody carries anything.
  const last = nodes.known('a');
  nodes.holdAtA([]);
  nodes.putAtB(last);
  nodes.holdAtB(holds(true));
  await nodes.answersGoTo('b');
  await nodes.leaveFromB();
  nodes.turnAtA({ elsewhere: slot });
  await goOn('after a loss');

  assert.equal(names().length, 2 * kinds.length, `nobody had to begin anew: ${names().join(', ')}`);
  assert.deepEqual(await network.sources(), [addresses[4].eip, addresses[6].eip]);
});
