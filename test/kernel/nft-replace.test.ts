/** Traffic while the tables change under it: what leaves has the EIP, in every moment. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { addresses, openNetwork } from './nft-network.ts';
import { gateway, tableOf, worker } from './nft-tables.ts';

const ROUNDS = 10;

it('no packet leaves with another source, or is lost, while the tables are replaced and changed', async () => {
  await using network = await openNetwork('replace');
  await network.workerTable.apply(tableOf(worker));
  await network.gatewayTable.apply(tableOf(gateway));
  const stopping = new AbortController();
  // New flows all the time. Nobody listens at the port; it is only about who the outside sees.
  const flows = `while :; do echo x > /dev/udp/${addresses[4].outside}/9; echo x > /dev/udp/${addresses[6].outside}/9; done`;
  const sending = network.pod.programs.follow(['bash', '-c', flows], () => {}, stopping.signal);
  // And one that lasts, whose packets are counted.
  const pinging = network.pod.programs.run([
    'ping',
    '-n',
    '-q',
    '-c',
    '200',
    '-i',
    '0.01',
    '-W',
    '2',
    addresses[4].outside,
  ]);
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      // Another setting makes a replacement of the whole table, another pod a change.
      const settings = { ...tableOf({}).settings, mss: { ipv4: 1400 - round, ipv6: 1380 - round } };
      assert.equal((await network.workerTable.apply({ ...tableOf(worker), settings })).wasReplaced, true);
      assert.equal((await network.gatewayTable.apply({ ...tableOf(gateway), settings })).wasReplaced, true);
      const pod4 = new Map([...(worker.pod4 ?? []), [`10.244.9.${round}`, '0x25000009']]);
      const cluster4 = new Map([[`10.${128 + round}.0.0/16`, ''], ...(worker.cluster4 ?? [])]);
      await network.workerTable.apply({ ...tableOf({ ...worker, pod4, cluster4 }), settings });
    }
    assert.match((await pinging).stdout, /200 packets transmitted, 200 received/);
  } finally {
    stopping.abort();
    await Promise.all([sending, pinging]);
  }
  assert.deepEqual(await network.sources(), [addresses[4].eip, addresses[6].eip]);
});
