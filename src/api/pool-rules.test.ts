import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { defaultInPool, equalPools } from './pool-rules.ts';

type Pools = Parameters<Exclude<typeof equalPools.holds, 'server'>>[0];

function holds(rule: typeof equalPools, pools: Pools): boolean {
  assert.ok(rule.holds !== 'server');
  return rule.holds(pools);
}

describe('equalPools', () => {
  const cases: readonly (readonly [string, Pools, boolean])[] = [
    ['one family only', { ipv4: ['10.0.0.1'] }, true],
    ['an empty list beside a full one', { ipv4: ['10.0.0.1'], ipv6: [] }, true],
    ['equal ranges', { ipv4: ['10.0.0.1-10.0.0.16'], ipv6: ['fd00::-fd00::f'] }, true],
    ['ranges one apart', { ipv4: ['10.0.0.1-10.0.0.16'], ipv6: ['fd00::-fd00::10'] }, false],
    ['an address that is listed twice', { ipv4: ['10.0.0.1'], ipv6: ['fd00::1', 'fd00:0::1'] }, true],
    ['overlapping ranges', { ipv4: ['10.0.0.1-10.0.0.4', '10.0.0.3-10.0.0.6'], ipv6: ['fd00::1-fd00::6'] }, true],
    ['an IPv4 CIDR without its ends', { ipv4: ['10.0.0.0/29'], ipv6: ['fd00::1-fd00::6'] }, true],
    ['an IPv4 CIDR with its ends', { ipv4: ['10.0.0.0/29'], ipv6: ['fd00::1-fd00::8'] }, false],
    [
      'ends that are named beside their CIDR',
      { ipv4: ['10.0.0.0/29', '10.0.0.0', '10.0.0.7'], ipv6: ['fd00::/125'] },
      true,
    ],
    ['a /31 and a /32, which lose nothing', { ipv4: ['10.0.0.0/31', '10.0.0.9/32'], ipv6: ['fd00::1-fd00::3'] }, true],
    ['a huge pool', { ipv4: ['10.0.0.0/8'], ipv6: ['fd00::/64'] }, false],
    ['an unreadable entry, which is another rule', { ipv4: ['10.0.0.1', 'x'], ipv6: ['fd00::1'] }, true],
  ];
  for (const [name, pools, isRight] of cases) {
    test(`${isRight ? 'takes' : 'refuses'} ${name}`, () => assert.equal(holds(equalPools, pools), isRight));
  }
});

describe('defaultInPool', () => {
  const pools = { ipv4: ['10.0.0.1', '10.0.0.4-10.0.0.6', '10.1.0.0/24'], ipv6: ['fd00::a-fd00::10', 'fd01::/64'] };
  for (const [eip, isInside] of [
    ['10.0.0.1', true],
    ['10.0.0.2', false],
    ['10.0.0.6', true],
    ['10.0.0.7', false],
    ['10.1.0.200', true],
    ['', true],
  ] as const) {
    test(`IPv4 "${eip}"`, () => assert.equal(holds(defaultInPool(4), { ...pools, ipv4DefaultEIP: eip }), isInside));
  }
  for (const [eip, isInside] of [
    ['fd00::9', false],
    ['fd00::F', true],
    ['fd00::11', false],
    ['fd01:0::5', true],
  ] as const) {
    test(`IPv6 "${eip}"`, () => assert.equal(holds(defaultInPool(6), { ...pools, ipv6DefaultEIP: eip }), isInside));
  }
  test('refuses a default without a pool', () =>
    assert.equal(holds(defaultInPool(4), { ipv4DefaultEIP: '10.0.0.1' }), false));
});
