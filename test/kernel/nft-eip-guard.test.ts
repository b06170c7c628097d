/** What pods on workers get at the EIPs of a gateway node that they send through: an answer to a ping, and no service. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TableElements } from '../../src/core/node/desired.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { addresses, type Network, openNetwork } from './nft-network.ts';
import { gateway, tableOf, worker } from './nft-tables.ts';

const TALK = join(import.meta.dirname, 'talk.ts');
const unguarded = { eips4: new Map(), eips6: new Map() };

describe('packets to an EIP through the tunnel', () => {
  let network: Network;
  before(async () => {
    network = await openNetwork('guard');
  });
  after(() => network[Symbol.asyncDispose]());

  /** Sets both tables and forgets connections. */
  const given = async (onGateway: Partial<TableElements> = {}): Promise<void> => {
    await network.workerTable.apply(tableOf(worker));
    await network.gatewayTable.apply(tableOf({ ...gateway, ...onGateway }));
    for (const node of [network.worker, network.gateway]) await node.must('conntrack', '-F');
  };

  /** How many packets the guard of the gateway node drops while something happens. */
  const dropsDuring = async (work: () => Promise<unknown>): Promise<number> => {
    const { drops: earlier } = await network.gatewayTable.counters();
    await work();
    const { drops } = await network.gatewayTable.counters();
    return drops.eip_input.packets - earlier.eip_input.packets;
  };

  for (const family of [4, 6] as const) {
    const at = addresses[family];

    describe(`IPv${family}`, () => {
      it('of a pod on a worker do not reach services of the gateway node at its EIP', async () => {
        await given();
        const stop = new AbortController();
        const served: string[] = [];
        const serving = network.gateway.programs.follow(
          [process.execPath, TALK, 'server', at.eip],
          (line) => served.push(line),
          stop.signal,
        );
        const say = `echo hello > /dev/udp/${at.eip}/80`;
        const connect = ['timeout', '2', 'bash', '-c', `: < /dev/tcp/${at.eip}/80`];
        try {
          await eventually('the service listens', () => served.includes('listening'));
          const dropped = await dropsDuring(async () => {
            await network.pod.must('bash', '-c', say);
            const { code } = await network.pod.programs.run(connect);
            assert.notEqual(code, 0, 'no TCP connection is made');
            assert.ok(await network.ping(at.eip), 'an EIP answers a ping');
          });
          assert.ok(dropped >= 2, `${dropped} packets dropped`);
          assert.deepEqual(served, ['listening'], 'the service heard of nobody');
          // The service is there: without the guard the pod reaches it.
          await given(unguarded);
          await network.pod.must(...connect);
        } finally {
          stop.abort();
          await serving;
        }
      });

      it('of a pod on a worker do not reach services at an EIP that came to the gateway node after their first', async () => {
        await given(unguarded);
        const port = `420${family}`;
        const say = [
          process.execPath,
          '-e',
          `const s = require('node:dgram').createSocket('udp${family}'); s.bind(${port}, () => s.send('x', 9, '${at.eip}', () => s.close()))`,
        ];
        await network.pod.must(...say);
        await network.gatewayTable.apply(tableOf(gateway));
        const dropped = await dropsDuring(() => network.pod.must(...say));
        assert.equal(dropped, 1);
      });
    });
  }
});
