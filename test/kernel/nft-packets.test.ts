/** Real packets through the table of a worker and of a gateway node: which source the outside sees, and what is counted. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import koffi from 'koffi';
import type { TableElements } from '../../src/core/node/desired.ts';
import { DROP, gatewayMark, LEAVE_ALONE, markText, replyMark } from '../../src/core/node/numbers.ts';
import type { Nftables } from '../../src/dataplane/nft/nftables.ts';
import { type DropReason, OWNED, TABLE } from '../../src/dataplane/nft/stored.ts';
import { settings } from '../../src/dataplane/nft/testing/tables.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import type { Namespace } from './namespace.ts';
import { addresses, type Network, openNetwork } from './nft-network.ts';
import { CLASS, gateway, SLOT, SNAT, tableOf, worker } from './nft-tables.ts';

const TALK = join(import.meta.dirname, 'talk.ts');

describe('packets through the table', () => {
  let network: Network;
  before(async () => {
    network = await openNetwork('packets');
  });
  after(() => network[Symbol.asyncDispose]());

  /** Sets both tables, forgets connections and what the outside saw. */
  const given = async (
    onWorker: Partial<TableElements> = {},
    onGateway: Partial<TableElements> = {},
  ): Promise<void> => {
    await network.workerTable.apply(tableOf({ ...worker, ...onWorker }));
    await network.gatewayTable.apply(tableOf({ ...gateway, ...onGateway }));
    for (const node of [network.worker, network.gateway]) await node.must('conntrack', '-F');
    await network.sources();
  };

  /** How many packets a table drops for a reason while something happens. */
  const dropsDuring = async (table: Nftables, reason: DropReason, work: () => Promise<unknown>): Promise<number> => {
    const { drops: earlier } = await table.counters();
    await work();
    const { drops } = await table.counters();
    return drops[reason].packets - earlier[reason].packets;
  };

  for (const family of [4, 6] as const) {
    const at = addresses[family];

    describe(`IPv${family}`, () => {
      it('leave with the EIP, come back, and are counted on both nodes', async () => {
        await given();
        const slots = (await network.workerTable.counters()).slots.get(1);
        const eips = (await network.gatewayTable.counters()).eips.get(at.eip);
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.eip]);
        // The masquerade of the plugin on the worker did not get hold of them.
        assert.match(await network.gateway.must('conntrack', '-L', '-f', `ipv${family}`), new RegExp(`src=${at.pod} `));
        const slotsThen = (await network.workerTable.counters()).slots.get(1);
        const eipsThen = (await network.gatewayTable.counters()).eips.get(at.eip);
        assert.equal((slotsThen?.packets ?? 0) - (slots?.packets ?? 0), 1);
        assert.equal((eipsThen?.sent.packets ?? 0) - (eips?.sent.packets ?? 0), 1);
        assert.equal((eipsThen?.received.packets ?? 0) - (eips?.received.packets ?? 0), 1);
      });

      it('leave with the address of the node when the verdict says so', async () => {
        await given({ [`dst${family}`]: new Map([[`${CLASS} . ${at.outside}`, markText(LEAVE_ALONE)]]) });
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.worker]);
      });

      it('leave with the address of the node from a pod that no policy knows', async () => {
        await given({ pod4: new Map(), pod6: new Map() });
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.worker]);
      });

      it('are dropped when the way into the tunnel is gone', async () => {
        await given();
        const rule = ['pref', '94', 'fwmark', '0x26010000/0xffff0000', 'lookup', '2601'];
        await network.worker.must('ip', `-${family}`, 'rule', 'delete', ...rule);
        try {
          const dropped = await dropsDuring(network.workerTable, 'astray', () => network.ping(at.outside));
          assert.ok(dropped > 0);
          assert.deepEqual(await network.sources(), []);
        } finally {
          await network.worker.must('ip', `-${family}`, 'rule', 'add', ...rule);
        }
        assert.ok(await network.ping(at.outside));
      });

      it('get no answer past the tunnel, which a node that forgets them would take for the beginning of others', async () => {
        await given();
        const stop = new AbortController();
        const talk = (namespace: Namespace, onLine: (line: string) => void, ...args: readonly string[]) =>
          namespace.programs.follow([process.execPath, TALK, ...args], onLine, stop.signal);
        let heard = 0;
        const served: string[] = [];
        const talking = [talk(network.outside, (line) => served.push(line), 'server', at.outside)];
        const rule = ['pref', '94', 'fwmark', '0x27000011', 'lookup', '2700017'];
        const pods = family === 4 ? '10.244.1.0/24' : 'fd44:1::/64';
        await network.gateway.must('ip', `-${family}`, 'route', 'add', pods, 'via', at.worker);
        try {
          await eventually('the server listens', () => served.includes('listening'));
          const onLine = (): void => {
            heard += 1;
          };
          talking.push(talk(network.pod, onLine, 'pong', at.outside, `410${family}`));
          await eventually('they talk', () => heard > 3);
          await network.gateway.must('ip', `-${family}`, 'rule', 'delete', ...rule);
          const astray = async () => (await network.gatewayTable.counters()).drops.astray.packets;
          const droppedBefore = await astray();
          for (let times = 0; times < 20; times += 1) await network.worker.programs.run(['conntrack', '-F']);
          assert.deepEqual(await network.sources(), [at.eip]);
          await eventually('an answer is dropped', async () => (await astray()) > droppedBefore);
          await network.gateway.must('ip', `-${family}`, 'rule', 'add', ...rule);
          const before = heard;
          await eventually('they go on', () => heard > before);
          assert.deepEqual(await network.sources(), [at.eip]);
        } finally {
          stop.abort();
          await Promise.all(talking);
          await network.gateway.programs.run(['ip', `-${family}`, 'rule', 'add', ...rule]);
          await network.gateway.must('ip', `-${family}`, 'route', 'delete', pods);
        }
      });

      it('leave with the EIP from a range', async () => {
        const range = family === 4 ? '10.244.1.0/24' : 'fd44:1::/64';
        await given({ pod4: new Map(), pod6: new Map(), [`net${family}`]: new Map([[range, CLASS]]) });
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.eip]);
      });

      it('leave here when this node is the gateway node', async () => {
        // The address of the worker stands for an EIP: it is there already.
        await given({ slot_fwd: new Map([[SLOT, SNAT]]), [`slot_eip${family}`]: new Map([[SNAT, at.worker]]) });
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.worker]);
        assert.equal((await network.workerTable.counters()).slots.get(1)?.packets, 1);
      });

      it('never leave with the address of the pod when the gateway node of their connection is now this one', async () => {
        await given();
        const sameConnection = ['-e', '77', at.outside];
        assert.ok(await network.ping(...sameConnection));
        assert.deepEqual(await network.sources(), [at.eip]);
        const here = { slot_fwd: new Map([[SLOT, SNAT]]), [`slot_eip${family}`]: new Map([[SNAT, at.worker]]) };
        await network.workerTable.apply(tableOf({ ...worker, ...here }));
        const dropped = await dropsDuring(network.workerTable, 'foreign_source', () => network.ping(...sameConnection));
        assert.deepEqual([dropped, await network.sources()], [1, []]);
        await network.worker.must('conntrack', '-D', '-f', `ipv${family}`, '-m', SLOT);
        assert.ok(await network.ping(...sameConnection), 'once it is forgotten, it goes on with the new address');
        assert.deepEqual(await network.sources(), [at.worker]);
      });

      it('of a connection that another node had leave with the EIP only while this node owns it', async () => {
        const here = { slot_fwd: new Map([[SLOT, SNAT]]), [`slot_eip${family}`]: new Map([[SNAT, at.worker]]) };
        const gated = tableOf({ ...worker, ...here, [`eips${family}`]: new Map([[at.worker, '']]) });
        await given();
        await network.workerTable.apply({ ...gated, settings: { ...gated.settings, isGated: true } });
        const owned = ['inet', TABLE, OWNED[`ipv${family}`]];
        await network.worker.must('nft', 'add', 'element', ...owned, '{', at.worker, '}');
        const sameConnection = ['-e', '77', at.outside];
        assert.ok(await network.ping(...sameConnection));
        // As the mirror makes it: nobody else knows the slot of the pod.
        await network.worker.must(
          'conntrack',
          '-U',
          '-f',
          `ipv${family}`,
          '-s',
          at.pod,
          '-m',
          markText(replyMark(0x11)),
        );
        assert.ok(await network.ping(...sameConnection));
        assert.deepEqual(await network.sources(), [at.worker]);
        await network.worker.must('nft', 'flush', 'set', ...owned);
        const dropped = await dropsDuring(network.workerTable, 'not_owned', () => network.ping(...sameConnection));
        assert.deepEqual([dropped, await network.sources()], [1, []]);
      });

      it('reach the node itself and the cluster without a gateway', async () => {
        await given({ dflt4: new Map([[CLASS, markText(DROP)]]), dflt6: new Map([[CLASS, markText(DROP)]]) });
        assert.ok(await network.ping(at.worker), 'an address of the node');
        assert.ok(await network.ping(family === 4 ? '10.244.1.1' : 'fd44:1::1'), 'an address of the cluster');
      });

      it('are dropped when nothing serves the policy', async () => {
        await given({ [`dflt${family}`]: new Map([[CLASS, markText(DROP)]]) });
        const dropped = await dropsDuring(network.workerTable, 'unavailable', () => network.ping(at.outside));
        assert.deepEqual([dropped, await network.sources()], [1, []]);
      });

      it('are dropped when their slot is gone', async () => {
        await given({ slot_fwd: new Map() });
        const dropped = await dropsDuring(network.workerTable, 'unknown_slot', () => network.ping(at.outside));
        assert.deepEqual([dropped, await network.sources()], [1, []]);
      });

      it('are dropped on a gateway node that has no EIP for them', async () => {
        await given({}, { slot_eip4: new Map(), slot_eip6: new Map() });
        const dropped = await dropsDuring(network.gatewayTable, 'no_eip', () => network.ping(at.outside));
        assert.deepEqual([dropped, await network.sources()], [1, []]);
      });

      it('are dropped when they are part of no connection', async () => {
        await given();
        const dropped = await dropsDuring(network.workerTable, 'pod_stateless', async () => {
          sendEchoReply(network.pod.name, family, at.outside);
          // Packets keep their order on this path: once the ping is back, the one before it is through or gone.
          await network.ping(at.outside);
        });
        assert.deepEqual([dropped, await network.sources()], [1, [at.eip]]);
      });

      it('carry errors of the gateway node back to the pod', async () => {
        await given();
        // The way behind the gateway node is narrower than the tunnel.
        const narrow = [`-${family}`, 'route', 'replace', at.outside, 'dev', 'eth0', 'mtu', 'lock', '1300'];
        await network.gateway.must('ip', ...narrow);
        try {
          const ping = ['ping', '-n', '-M', 'do', '-s', '1350', '-c', '1', '-W', '1', at.outside];
          const { stdout } = await network.pod.programs.run(ping);
          assert.match(stdout, /mtu ?= ?1300/);
        } finally {
          await network.gateway.must('ip', `-${family}`, 'route', 'delete', at.outside, 'dev', 'eth0');
          await network.pod.must('ip', `-${family}`, 'route', 'flush', 'cache');
        }
      });

      it('to an EIP are dropped unless they ping or belong to a connection', async () => {
        await given();
        const dropped = await dropsDuring(network.gatewayTable, 'eip_input', async () => {
          await network.outside.programs.run(['ping', '-n', '-c', '1', '-W', '1', at.eip]);
          await network.outside.must('bash', '-c', `echo hello > /dev/udp/${at.eip}/9`);
        });
        assert.equal(dropped, 1);
        const { code } = await network.outside.programs.run(['ping', '-n', '-c', '1', '-W', '1', at.eip]);
        assert.equal(code, 0);
      });

      it('from a pod to an EIP of its own node are dropped, with and without a connection', async () => {
        // The address of the worker stands for an EIP: it is there already.
        await given({ [`eips${family}`]: new Map([[at.worker, '']]) });
        const dropped = await dropsDuring(network.workerTable, 'eip_input', async () => {
          await network.pod.must('bash', '-c', `echo hello > /dev/udp/${at.worker}/9`);
          sendEchoReply(network.pod.name, family, at.worker);
          assert.ok(await network.ping(at.worker), 'an EIP answers a ping');
        });
        assert.equal(dropped, 2);
      });

      it('of a pod that is not known yet stay within the cluster, with strict start', async () => {
        const nobody = { pod4: new Map(), pod6: new Map() };
        const ranges = {
          range4: new Map([['10.244.0.0/16', '']]),
          range6: new Map([['fd44::/16', '']]),
        };
        const strictly = async (elements: Partial<TableElements>) => {
          await given(elements);
          const table = tableOf({ ...worker, ...elements });
          await network.workerTable.apply({ ...table, settings: { ...table.settings, isStrict: true } });
        };
        await strictly({ ...nobody, ...ranges });
        const dropped = await dropsDuring(network.workerTable, 'unclassified', async () => {
          assert.equal(await network.ping(at.outside), false);
          sendEchoReply(network.pod.name, family, at.outside);
          assert.ok(await network.ping(at.worker), 'the node itself');
          assert.ok(await network.ping(family === 4 ? '10.244.1.1' : 'fd44:1::1'), 'an address of the cluster');
        });
        assert.deepEqual([dropped, await network.sources()], [2, []]);
        const { code } = await network.worker.programs.run(['ping', '-n', '-c', '1', '-W', '1', at.outside]);
        assert.equal(code, 0, 'a process of the node');
        await network.sources();
        await strictly({ ...nobody, ...ranges, [`known${family}`]: new Map([[at.pod, '']]) });
        assert.ok(await network.ping(at.outside), 'known, and under no policy');
        assert.deepEqual(await network.sources(), [at.worker]);
        await strictly(ranges);
        assert.ok(await network.ping(at.outside), 'under a policy');
        assert.deepEqual(await network.sources(), [at.eip]);
      });

      for (const narrow of ['worker', 'gateway'] as const) {
        it(`of TCP leave with the EIP, in segments that fit the tunnel both ways; it is narrower at the ${narrow}`, async () => {
          await given();
          const mss = { ipv4: settings.mss.ipv4 - 100, ipv6: settings.mss.ipv6 - 100 };
          const { table, elements } =
            narrow === 'worker'
              ? { table: network.workerTable, elements: worker }
              : { table: network.gatewayTable, elements: gateway };
          const wide = tableOf(elements);
          await table.apply({ ...wide, settings: { ...wide.settings, mss } });
          for (const end of [network.pod, network.outside]) await countSegments(end, mss[`ipv${family}`]);
          assert.equal(await talkTcp(network, at.outside), at.eip);
          for (const end of [network.pod, network.outside]) {
            assert.match(await end.must('nft', 'list', 'counter', 'inet', 'segments', 'fitting'), /packets 1 /);
          }
          assert.deepEqual(await network.sources(), [at.eip]);
        });
      }
    });
  }

  it('carry errors of the worker outside, with the EIP', async () => {
    await given();
    const at = addresses[6];
    // The way to the pod is narrower than the tunnel. IPv6, because routers may not cut its packets.
    await network.worker.must('ip', '-6', 'route', 'replace', at.pod, 'dev', 'to-pod', 'mtu', 'lock', '1300');
    try {
      assert.equal(await network.ping('-s', '1350', at.outside), false);
      assert.ok(await network.ping('-s', '1350', at.outside), 'the outside now sends smaller packets');
      assert.deepEqual(await network.sources(), [at.eip]);
    } finally {
      await network.worker.must('ip', '-6', 'route', 'delete', at.pod, 'dev', 'to-pod');
      await network.outside.must('ip', '-6', 'route', 'flush', 'cache');
    }
  });

  it('through the tunnel are dropped when they come from no node', async () => {
    await given({}, { vteps4: new Map([[addresses[4].gateway, '']]) });
    const ping = () => network.ping(addresses[4].outside);
    assert.equal(await dropsDuring(network.gatewayTable, 'foreign_tunnel', ping), 1);
    assert.deepEqual(await network.sources(), []);
  });

  it('through the tunnel are dropped when they are part of no connection', async () => {
    await given();
    const dropped = await dropsDuring(network.gatewayTable, 'tunnel_stateless', async () => {
      sendEchoReply(network.worker.name, 4, '192.200.0.12');
      await network.ping(addresses[4].outside);
    });
    assert.equal(dropped, 1);
  });

  it('of a running connection follow their slot to another place, with the same EIP', async () => {
    await given();
    assert.ok(await network.ping(addresses[4].outside));
    // Replacing the value of one element, as a move does.
    await network.workerTable.apply(tableOf({ ...worker, slot_fwd: new Map([[SLOT, markText(gatewayMark(2, 1))]]) }));
    await network.worker.must('ip', 'rule', 'add', 'pref', '94', 'fwmark', '0x26020000/0xffff0000', 'lookup', '2601');
    assert.ok(await network.ping(addresses[4].outside));
    assert.deepEqual(await network.sources(), [addresses[4].eip]);
  });
});

/** An answer that nobody asked for: connection tracking calls it invalid. Sent through a raw socket. */
const sendEchoReply = (namespace: string, family: 4 | 6, to: string): void => {
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const sendTo = library.func(
    'intptr_t sendto(int s, void *data, size_t length, int flags, void *to, uint32_t toLength)',
  );
  const toBinary = library.func('int inet_pton(int family, const char *text, void *out)');
  const close = library.func('int close(int socket)');
  const [AF_INET, AF_INET6, SOCK_RAW] = [2, 10, 3];
  const domain = family === 4 ? AF_INET : AF_INET6;
  const address = Buffer.alloc(family === 4 ? 16 : 28);
  address.writeUInt16LE(domain, 0);
  toBinary(domain, to, address.subarray(family === 4 ? 4 : 8));
  // Type, code, checksum, identifier, sequence. The kernel fills in the checksum of ICMPv6.
  const message = Buffer.from(family === 4 ? '0000fffe00000001' : '8100000000000001', 'hex');
  const descriptor: number = inNamespace(namespace, () => socket(domain, SOCK_RAW, family === 4 ? 1 : 58));
  const sent: number = sendTo(descriptor, message, message.length, 0, address, address.length);
  close(descriptor);
  assert.equal(sent, message.length);
};

/** Counts segments that arrive and say that those to come may have this size. */
const countSegments = (end: Namespace, size: number): Promise<void> =>
  end.nft(`table inet segments\ndelete table inet segments\ntable inet segments {
  counter fitting { }
  chain arrive { type filter hook input priority filter; tcp option maxseg size ${size} counter name fitting; }
}`);

/** Connects from the pod to a server outside; the address that the server saw. */
const talkTcp = async (network: Network, host: string): Promise<string> => {
  const stopping = new AbortController();
  const lines: string[] = [];
  const server = `require('node:net').createServer((s) => s.end(s.remoteAddress)).listen(7001, '${host}', () => console.log('ready'))`;
  const serving = network.outside.programs.follow(
    [process.execPath, '-e', server],
    (line) => lines.push(line),
    stopping.signal,
  );
  try {
    await eventually('the server listens', () => lines.includes('ready'));
    return await network.pod.must(
      process.execPath,
      '-e',
      `require('node:net').connect({ host: '${host}', port: 7001, timeout: 3000 }).on('timeout', () => process.exit(1)).pipe(process.stdout)`,
    );
  } finally {
    stopping.abort();
    await serving;
  }
};
