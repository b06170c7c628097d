/** Two nodes that are set up by the network module alone: packets find their way through the tunnel and to the EIPs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNetwork } from '../../src/dataplane/ip/network.ts';
import { networkDesired } from '../../src/dataplane/ip/testing/desired.ts';
import { runningClock, usualNames } from '../../src/dataplane/ip/testing/fake-network.ts';
import { applied } from '../../src/dataplane/ip/testing/node.ts';
import { type Namespace, openNamespace } from './namespace.ts';

const WORKER = 11;
const GATEWAY = 12;

test('packets with a gateway mark go through the tunnel, and EIPs are answered for', async () => {
  await using worker = await openNamespace('worker');
  await using gateway = await openNamespace('gateway');
  await worker.must('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', gateway.name);
  await setUp(worker, WORKER);
  await setUp(gateway, GATEWAY);
  // Something behind the gateway node that nobody has a route to.
  for (const address of ['192.0.2.1/32', '2001:db8::1/128'])
    await gateway.must('ip', 'addr', 'add', address, 'dev', 'lo');
  const networks = [worker, gateway].map(({ programs }) =>
    createNetwork({ programs, names: usualNames, clock: runningClock }),
  );
  const desired = [
    networkDesired({ host: WORKER, gateways: [GATEWAY] }),
    networkDesired({ host: GATEWAY, gateways: [], workers: [WORKER], eips: [100] }),
  ];
  for (const [index, network] of networks.entries()) {
    assert.deepEqual((await applied(network, desired[index] ?? assert.fail())).refused, []);
  }
  // What the table of src/dataplane/nft does: the route of the outer packet must not be looked up with the gateway mark.
  await worker.must(
    'nft',
    'table inet t { chain c { type filter hook postrouting priority mangle; oifname "egress.vxlan" meta mark set 0x12000001; }; }',
  );
  // Replies have no mark here; the tunnel address that they go to is on the tunnel network.
  for (const address of ['172.31.0.12', 'fd11::12']) await ping(worker, address);
  for (const address of ['192.0.2.1', '2001:db8::1']) {
    await assert.rejects(ping(worker, address), `${address} must not be reached without the mark`);
    await ping(worker, address, '-m', String(0x260c0001));
  }
  await ping(worker, '10.6.0.100');
  await assert.rejects(ping(worker, 'fd06::100'), 'an IPv6 EIP is answered for only with proxy_ndp');
  // What core asks of src/dataplane/sysctl on a gateway node.
  const settings = ['conf/all/forwarding=1', 'conf/eth0/proxy_ndp=1', 'neigh/eth0/proxy_delay=0'];
  await gateway.must('sysctl', '-qw', ...settings.map((setting) => `net/ipv6/${setting}`));
  await ping(worker, 'fd06::100');
  await networks[1]?.remove();
  await worker.must('ip', 'neigh', 'flush', 'all');
  for (const address of ['10.6.0.100', 'fd06::100', '172.31.0.12']) {
    await assert.rejects(ping(worker, address), `${address} must be gone`);
  }
});

const setUp = async ({ must }: Namespace, host: number): Promise<void> => {
  await must('ip', 'link', 'set', 'eth0', 'up');
  await must('ip', 'addr', 'add', `10.6.0.${host}/24`, 'dev', 'eth0');
  await must('ip', 'addr', 'add', `fd06::${host}/64`, 'dev', 'eth0', 'nodad');
};

const ping = ({ must }: Namespace, address: string, ...options: readonly string[]): Promise<string> =>
  must('ping', '-n', '-c', '1', '-W', '2', ...options, address);
