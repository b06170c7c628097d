/** What an operator sees on a gateway node, in the words of `ip` and `bridge`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNetwork } from '../../src/dataplane/ip/network.ts';
import { everything } from '../../src/dataplane/ip/testing/desired.ts';
import { hostLines, runningClock, usualNames } from '../../src/dataplane/ip/testing/fake-network.ts';
import { applied } from '../../src/dataplane/ip/testing/node.ts';
import { openNamespace } from './namespace.ts';

const text = (...lines: readonly string[]): string => lines.join('\n');
const sorted = (lines: string): string => lines.split('\n').toSorted().join('\n');

test('the kernel shows what was applied', async () => {
  await using namespace = await openNamespace('iptext');
  for (const line of hostLines) await namespace.must('ip', ...line.split(' '));
  const { programs } = namespace;
  const network = createNetwork({ programs, names: usualNames, clock: runningClock });
  assert.deepEqual((await applied(network, everything)).refused, []);
  const shown = async (command: string, isOurs: RegExp = /./): Promise<string> =>
    (await namespace.must(...command.split(' ')))
      .split('\n')
      .map((line) => line.trim().replaceAll(/\s+/g, ' '))
      .filter((line) => line !== '' && isOurs.test(line))
      .join('\n');

  const rules = text(
    '93: from all fwmark 0/0xff000000 goto 95',
    '94: from all fwmark 0x260c0000/0xffff0000 lookup 2612',
    '94: from all fwmark 0x260d0000/0xffff0000 lookup 2613',
    '94: from all fwmark 0x2700000c lookup 2700012',
    '94: from all fwmark 0x2700000e lookup 2700014',
    '95: from all fwmark 0x26000000/0xffff0000 lookup 2600',
  );
  assert.equal(await shown('ip rule', /^9/), rules);
  assert.equal(await shown('ip -6 rule', /^9/), rules);

  assert.equal(
    await shown('ip -4 route show table all', /table 2\d/),
    text(
      'default via 172.31.0.12 dev egress.vxlan table 2612 onlink',
      'default via 172.31.0.13 dev egress.vxlan table 2613 onlink',
      'default via 172.31.0.12 dev egress.vxlan table 2700012 onlink',
      'default via 172.31.0.14 dev egress.vxlan table 2700014 onlink',
    ),
  );
  assert.equal(
    await shown('ip -6 route show table all', /table 2\d/),
    text(
      'default via fd11::12 dev egress.vxlan table 2612 metric 1024 onlink pref medium',
      'default via fd11::13 dev egress.vxlan table 2613 metric 1024 onlink pref medium',
      'default via fd11::12 dev egress.vxlan table 2700012 metric 1024 onlink pref medium',
      'default via fd11::14 dev egress.vxlan table 2700014 metric 1024 onlink pref medium',
    ),
  );

  const device = await shown('ip -d link show egress.vxlan');
  assert.match(device, /^\d+: egress\.vxlan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 /m);
  assert.match(device, /^link\/ether 66:00:00:00:00:0b /m);
  assert.match(device, /^vxlan id 100 local 10\.6\.0\.11 dev eth0 .*dstport 7789 nolearning .* udpcsum .* gbp /m);
  assert.match(device, /^alias sallyport$/m);

  assert.equal(
    sorted(await shown('ip addr show egw-eip', /scope global/)),
    text(
      'inet 10.6.0.100/32 scope global egw-eip',
      'inet 10.6.0.101/32 scope global egw-eip',
      'inet6 fd06::100/128 scope global nodad deprecated',
      'inet6 fd06::101/128 scope global nodad deprecated',
    ),
  );
  assert.equal(
    sorted(await shown('ip neigh show dev egress.vxlan')),
    text(
      '172.31.0.12 lladdr 66:00:00:00:00:0c PERMANENT',
      '172.31.0.13 lladdr 66:00:00:00:00:0d PERMANENT',
      '172.31.0.14 lladdr 66:00:00:00:00:0e PERMANENT',
      'fd11::12 lladdr 66:00:00:00:00:0c PERMANENT',
      'fd11::13 lladdr 66:00:00:00:00:0d PERMANENT',
      'fd11::14 lladdr 66:00:00:00:00:0e PERMANENT',
    ),
  );
  assert.equal(
    sorted(await shown('bridge fdb show dev egress.vxlan')),
    text(
      '66:00:00:00:00:0c dst 10.6.0.12 self permanent',
      '66:00:00:00:00:0d dst 10.6.0.13 self permanent',
      '66:00:00:00:00:0e dst 10.6.0.14 self permanent',
    ),
  );
  assert.equal(
    sorted(await shown('ip -6 -d neigh show proxy')),
    text('fd06::100 dev eth0 proxy proto 38', 'fd06::101 dev eth0 proxy proto 38'),
  );
});
