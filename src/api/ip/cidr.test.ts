import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Address4, Address6 } from 'ip-address';
import { familyOfCidr, intervalOfCidr, parseCidr, parseCidrMasking, prefixLengthOf } from './cidr.ts';
import { parseEntry, parseRange } from './entry.ts';
import type { IpReason } from './reason.ts';

const ipv4Cidr = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
// The value starts with 2 so that no IPv4-mapped address is made.
const ipv6Cidr = fc.tuple(
  fc.bigInt({ min: 2n << 124n, max: (3n << 124n) - 1n }).map((value) => Address6.fromBigInt(value).correctForm()),
  fc.integer({ min: 4, max: 128 }),
);

describe('CIDR', () => {
  it('masks to the block of ip-address, in text, first and last address', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4Cidr, ipv6Cidr), ([address, length]) => {
        const text = `${address}/${length}`;
        const isIpv6 = address.includes(':');
        const oracle = isIpv6 ? new Address6(text) : new Address4(text);
        const base = isIpv6 ? 1n << 128n : 0n;
        const cidr = parseCidrMasking(text);
        assert.ok(cidr.ok);
        assert.equal(cidr.value, `${oracle.startAddress().correctForm()}/${length}`);
        assert.equal(prefixLengthOf(cidr.value), length);
        assert.equal(familyOfCidr(cidr.value), isIpv6 ? 6 : 4);
        assert.deepEqual(intervalOfCidr(cidr.value), {
          first: base + oracle.startAddress().bigInt(),
          last: base + oracle.endAddress().bigInt(),
        });
      }),
      { numRuns: 300 },
    );
  });

  it('is taken strictly exactly when masking changes nothing', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4Cidr, ipv6Cidr), ([address, length]) => {
        const masked = parseCidrMasking(`${address}/${length}`);
        assert.ok(masked.ok);
        const strict = parseCidr(`${address}/${length}`);
        assert.equal(strict.ok, masked.value === `${address}/${length}`);
        assert.deepEqual(parseCidr(masked.value), masked);
      }),
    );
  });

  it('with host bits is refused by the strict parser with both things it can mean', () => {
    assert.deepEqual(parseCidr('10.6.1.21/24'), {
      ok: false,
      reason: 'HostBitsSet',
      message:
        '"10.6.1.21/24" has bits set behind the prefix; write 10.6.1.0/24 for the block or 10.6.1.21 for the address.',
    });
  });

  it('with a wrong prefix length is refused with the allowed ones, however long the text is', () => {
    const parsed = parseCidr(`fd00::/${'1'.repeat(100_000)}`);
    assert.ok(!parsed.ok);
    assert.match(
      parsed.message,
      /^"fd00::\/1+\.\.\." needs a prefix length from 0 to 128 for IPv6, without leading zeros\.$/,
    );
  });

  const refused: [string, IpReason][] = [
    ['10.0.0.1', 'PrefixMissing'],
    ['10.0.0.0/', 'PrefixInvalid'],
    ['10.0.0.0/33', 'PrefixInvalid'],
    ['fd00::/129', 'PrefixInvalid'],
    ['10.0.0.0/08', 'PrefixInvalid'],
    ['10.0.0.0/+8', 'PrefixInvalid'],
    ['10.0.0.0/1e1', 'PrefixInvalid'],
    ['10.0.0.0/8/8', 'PrefixInvalid'],
    ['10.0.0.0/255.0.0.0', 'PrefixInvalid'],
    ['10.0.0.0 /8', 'Space'],
    ['10.0/16', 'PartCount'],
    ['010.0.0.0/8', 'LeadingZero'],
    ['/8', 'Empty'],
    ['::ffff:10.0.0.0/104', 'Ipv4Mapped'],
    ['fe80::%eth0/64', 'ZoneId'],
  ];
  for (const [text, reason] of refused) {
    it(`${text} is refused as ${reason} by both parsers`, () => {
      for (const parse of [parseCidr, parseCidrMasking]) {
        const parsed = parse(text);
        assert.equal(parsed.ok ? parsed.value : parsed.reason, reason);
      }
    });
  }
});

describe('range', () => {
  const refused: [string, IpReason][] = [
    ['10.0.0.1', 'RangeMalformed'],
    ['10.0.0.1-', 'RangeMalformed'],
    ['-10.0.0.1', 'RangeMalformed'],
    ['10.0.0.1-10.0.0.2-10.0.0.3', 'RangeMalformed'],
    ['10.0.0.1 - 10.0.0.2', 'Space'],
    ['10.0.0.1-9', 'PartCount'],
    ['10.0.0.1-fd00::1', 'RangeMixed'],
    ['10.0.0.0/24-10.0.1.0', 'PrefixUnexpected'],
  ];
  for (const [text, reason] of refused) {
    it(`${text} is refused as ${reason}`, () => {
      const parsed = parseRange(text);
      assert.equal(parsed.ok ? 'taken' : parsed.reason, reason);
    });
  }

  it('that is reversed is refused with the range it may have meant', () => {
    assert.deepEqual(parseRange('10.0.0.9-10.0.0.1'), {
      ok: false,
      reason: 'RangeReversed',
      message: '"10.0.0.9-10.0.0.1" ends before it starts; write 10.0.0.1-10.0.0.9 if you mean these addresses.',
    });
  });

  it('is taken exactly when its ends are in order', () => {
    const end = fc.bigInt({ min: 2n << 124n, max: (3n << 124n) - 1n });
    fc.assert(
      fc.property(end, end, (a, b) => {
        const parsed = parseRange([a, b].map((value) => Address6.fromBigInt(value).correctForm()).join('-'));
        assert.equal(parsed.ok ? 'taken' : parsed.reason, a <= b ? 'taken' : 'RangeReversed');
      }),
    );
  });

  it('compares by number: 10.0.0.9 comes before 10.0.0.10', () => {
    assert.deepEqual(parseRange('10.0.0.9-10.0.0.10'), {
      ok: true,
      value: { first: 0x0a000009n, last: 0x0a00000an },
    });
  });
});

describe('entry', () => {
  it('knows the form it was written in', () => {
    const kinds = ['10.0.0.1', 'fd00::1', '10.0.0.1-10.0.0.1', 'fd00::1-fd00::2', '10.0.0.0/8', 'fd00::/8'].map(
      (text) => {
        const entry = parseEntry(text, parseCidr);
        return entry.ok ? entry.value.kind : entry.reason;
      },
    );
    assert.deepEqual(kinds, ['address', 'address', 'range', 'range', 'cidr', 'cidr']);
  });
});
