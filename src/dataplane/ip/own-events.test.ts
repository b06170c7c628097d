import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NetworkDesired } from '../../core/node/desired.ts';
import { ip } from '../../core/testing/address.ts';
import { inStepWith } from './own-events.ts';

const desired: NetworkDesired = {
  links: [{ kind: 'holder', name: 'egw-eip' }],
  addresses: [
    { device: 'egw-eip', ip: ip('10.6.0.100'), prefixLength: 32 },
    { device: 'egw-eip', ip: ip('fd06::1'), prefixLength: 128 },
  ],
  rules: [
    { family: 4, priority: 94, mark: 0x26010000, mask: 0xffff0000, action: { kind: 'lookup', table: 2601 } },
    { family: 4, priority: 93, mark: 0, mask: 0xff000000, action: { kind: 'goto', priority: 95 } },
  ],
  routes: [
    { table: 2601, via: ip('172.31.0.2'), device: 'egw0' },
    { table: 2601, via: ip('fd11::2'), device: 'egw0' },
  ],
  neighbours: [{ device: 'egw0', ip: ip('172.31.0.2'), mac: '66:00:00:00:00:0c' }],
  forwardings: [{ device: 'egw0', mac: '66:00:00:00:00:0c', to: ip('10.6.0.12') }],
  proxies: [],
};
const isInStep = inStepWith(desired);

// As `ip -o monitor` of iproute2 6.1 prints them.
const told = [
  '2: egw-eip    inet 10.6.0.100/32 scope global egw-eip\\       valid_lft forever preferred_lft forever',
  '2: egw-eip    inet6 fd06::1/128 scope global nodad deprecated \\       valid_lft forever preferred_lft 0sec',
  '94:\tfrom all fwmark 0x26010000/0xffff0000 lookup 2601',
  '93:\tfrom all fwmark 0/0xff000000 goto 95 [unresolved]',
  '172.31.0.2 dev egw0 lladdr 66:00:00:00:00:0c PERMANENT ',
  '10.6.0.12 dev egw0 lladdr 66:00:00:00:00:0c NOARP PERMANENT ',
  'default via 172.31.0.2 dev egw0 table 2601 onlink ',
  'default via fd11::2 dev egw0 table 2601 metric 1024 onlink pref medium',
];

describe('what a monitor tells', () => {
  it('needs no look when it came and is desired, or went and is not', () => {
    for (const line of told) assert.equal(isInStep(line), true, line);
    for (const [index, [ours, others]] of [
      ['10.6.0.100', '10.6.0.101'],
      ['fd06::1/', 'fd06::2/'],
      ['2601', '2602'],
      ['goto 95', 'goto 96'],
      ['172.31.0.2', '172.31.0.3'],
      [':0c', ':0d'],
      ['2601', '2602'],
      ['2601', '2602'],
    ].entries()) {
      const gone = `Deleted ${told[index]?.replace(ours ?? '', others ?? '')}`;
      assert.equal(isInStep(gone), true, gone);
    }
  });

  it('needs a look when it went and is desired, or came and is not', () => {
    for (const line of told) assert.equal(isInStep(`Deleted ${line}`), false, line);
    assert.equal(isInStep(`Deleted ${told[4]?.replace(':0c', ':0d')}`), false, 'whatever it was like');
    assert.equal(isInStep(`Deleted ${told[5]?.replace('NOARP ', '')}`), false, 'a forwarding entry made otherwise');
    for (const line of [
      told[0]?.replace('10.6.0.100', '10.6.0.101'),
      told[0]?.replace('valid_lft forever', 'valid_lft 20sec'),
      told[1]?.replace(' deprecated', ''),
      told[1]?.replace('nodad', 'tentative'),
      told[2]?.replace('2601', '2602'),
      told[2]?.replace('from all', 'from 10.0.0.0/8'),
      told[4]?.replace(':0c', ':0d'),
      told[4]?.replace('PERMANENT', 'STALE'),
      told[5]?.replace('10.6.0.12', '10.6.0.13'),
      told[6]?.replace('172.31.0.2', '172.31.0.3'),
      told[6]?.replace('onlink', 'metric 5 onlink'),
      '2: egw-eip: <BROADCAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN group default',
    ]) {
      assert.equal(isInStep(line ?? ''), false, `${line}`);
    }
  });

  it('needs no look when the kernel makes its own routes to our addresses, and only to ours', () => {
    assert.equal(isInStep('fd06::1 dev egw-eip proto kernel metric 256 pref medium'), true);
    assert.equal(isInStep('Deleted fd06::1 dev egw-eip proto kernel metric 256 pref medium'), true);
    assert.equal(isInStep('10.6.0.0/24 dev eth0 proto kernel scope link src 10.6.0.11'), false);
  });
});
