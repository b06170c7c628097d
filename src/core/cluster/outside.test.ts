import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { contains, difference, formatSet, union } from '../ip/index.ts';
import { projectClusterInfo } from '../project/index.ts';
import { ip } from '../testing/address.ts';
import { insideOf, outsideOf, UNROUTED } from './outside.ts';

const ranges = projectClusterInfo({
  metadata: { name: 'default' },
  status: {
    egressIgnoreCIDR: {
      podCIDR: { ipv4: ['10.244.0.0/16'] },
      clusterIP: { ipv4: ['10.96.0.0/12'] },
      nodeIP: { ipv6: ['fd10::1'] },
      custom: { ipv4: ['203.0.113.0/24'] },
    },
  },
});

describe('outsideOf', () => {
  it('has every address that insideOf has not', () => {
    const [inside, outside] = [insideOf(ranges), outsideOf(ranges)];
    assert.deepEqual(formatSet(union(inside, outside)), ['0.0.0.0/0', '::/0']);
    assert.deepEqual(formatSet(difference(outside, inside)), formatSet(outside));
  });

  const cases: readonly [string, boolean][] = [
    ...['198.51.100.7', '169.253.255.255', '126.255.255.255', '240.0.0.1', '2001:db8::1', 'fec0::1', '::2'].map(
      (text): [string, boolean] => [text, true],
    ),
    ...['10.244.1.1', '10.96.0.1', '203.0.113.9', 'fd10::1'].map((text): [string, boolean] => [text, false]),
    ...['0.0.0.0', '0.1.2.3', '127.0.0.1', '169.254.169.254', '224.0.0.1', '255.255.255.255', '::', '::1'].map(
      (text): [string, boolean] => [text, false],
    ),
    ...['fe80::1', 'febf::1', 'ff02::1'].map((text): [string, boolean] => [text, false]),
  ];
  for (const [text, expected] of cases) {
    it(`${expected ? 'has' : 'does not have'} ${text}`, () =>
      assert.equal(contains(outsideOf(ranges), ip(text)), expected));
  }
});

it('nothing is outside while the ranges of the cluster are not known', () => {
  assert.deepEqual(formatSet(outsideOf(projectClusterInfo(undefined))), []);
});

describe('insideOf', () => {
  it('has only what is never outside while the ranges of the cluster are not known', () => {
    assert.deepEqual(formatSet(insideOf(undefined)), [
      '0.0.0.0/8',
      '127.0.0.0/8',
      '169.254.0.0/16',
      '224.0.0.0/4',
      '255.255.255.255',
      '::/127',
      'fe80::/10',
      'ff00::/8',
    ]);
  });
});

it('what is never routed has no address that a router could take, such as link-local', () => {
  assert.deepEqual(
    ['169.254.169.254', 'fe80::1', '0.1.2.3', '198.51.100.7'].filter((text) => contains(UNROUTED, ip(text))),
    [],
  );
});
