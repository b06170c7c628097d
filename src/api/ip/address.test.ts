import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Address4, Address6 } from 'ip-address';
import {
  compareIps,
  ipAt,
  ipBytes,
  ipOfBytes,
  isIpv4,
  isIpv6,
  parseIp,
  parseIpv4,
  parseIpv6,
  positionOf,
} from './address.ts';
import type { ipReasons } from './reason.ts';

const ipv6Value = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
  // Values made of few non-zero groups: this is where the rules about "::" live.
  fc
    .array(fc.constantFrom(0n, 0n, 0n, 1n, 0xffffn, 0xab0n), { minLength: 8, maxLength: 8 })
    .map((groups) => groups.reduce<bigint>((value, group) => (value << 16n) | group, 0n)),
);

const isMapped = (value: bigint) => value >> 32n === 0xffffn;
const ipv6Line = 1n << 128n;

/** Texts near the border between good and bad: pieces of addresses glued together at random. */
const nearlyAnAddress = fc
  .array(fc.constantFrom('0', '1', '9', '10', '255', '256', '010', 'ff', 'FFFF', '.', '.', ':', ':', '::', '%', 'g'), {
    minLength: 1,
    maxLength: 17,
  })
  .map((pieces) => pieces.join(''));

describe('parseIp', () => {
  it('takes every IPv4 address and writes it as ip-address does', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        const parsed = parseIp(text);
        assert.ok(parsed.ok);
        assert.equal(parsed.value, new Address4(text).correctForm());
        assert.equal(positionOf(parsed.value), new Address4(text).bigInt());
      }),
    );
  });

  it('takes every form of an IPv6 address and writes the RFC 5952 text that ip-address writes', () => {
    const forms = fc.tuple(ipv6Value, fc.constantFrom('correct', 'full', 'upper', 'quad'));
    fc.assert(
      fc.property(forms, ([value, form]) => {
        fc.pre(!isMapped(value));
        const oracle = Address6.fromBigInt(value);
        const texts = {
          correct: oracle.correctForm(),
          full: oracle.canonicalForm(),
          upper: oracle.correctForm().toUpperCase(),
          quad: oracle.to4in6(),
        };
        const parsed = parseIp(texts[form]);
        assert.ok(parsed.ok, `${texts[form]} was refused`);
        assert.equal(parsed.value, oracle.correctForm());
        assert.equal(positionOf(parsed.value), ipv6Line + value);
      }),
      { numRuns: 500 },
    );
  });

  it('takes exactly what node:net takes, but for zones and IPv4-mapped addresses', () => {
    fc.assert(
      fc.property(fc.oneof(nearlyAnAddress, fc.ipV6(), fc.string()), (text) => {
        const parsed = parseIp(text);
        const family = parsed.ok ? (isIpv4(parsed.value) ? 4 : 6) : 0;
        const isOurRefusal = !parsed.ok && (parsed.reason === 'ZoneId' || parsed.reason === 'Ipv4Mapped');
        if (!isOurRefusal) assert.equal(family, isIP(text), text);
      }),
      { numRuns: 3000 },
    );
  });

  it('gives canonical text: reading it again changes nothing, and equal positions are equal texts', () => {
    fc.assert(
      fc.property(ipv6Value, (value) => {
        fc.pre(!isMapped(value));
        const ip = ipAt(ipv6Line + value);
        assert.deepEqual(parseIp(ip), { ok: true, value: ip });
      }),
    );
  });

  const canonical: [string, string][] = [
    ['0:0:0:0:0:0:0:0', '::'],
    ['::1', '::1'],
    ['2001:DB8::', '2001:db8::'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'], // two runs of equal length: the first one
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'], // a single zero group is not shortened
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'], // the longest run, not the first
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'], // NAT64 prefix
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ];
  for (const [text, expected] of canonical) {
    it(`writes ${text} as ${expected}`, () => assert.deepEqual(parseIp(text), { ok: true, value: expected }));
  }

  const refused: [string, keyof typeof ipReasons, string][] = [
    ['', 'Empty', '"" is empty; write an address such as 10.6.1.21 or fd00::21.'],
    [' 10.0.0.1', 'Space', '" 10.0.0.1" holds a blank; write the address alone.'],
    ['10.0.0.1\n', 'Space', '"10.0.0.1\\n" holds a blank; write the address alone.'],
    [
      '010.0.0.1',
      'LeadingZero',
      '"010.0.0.1" has the part 010, which some programs read as octal; write 10.0.0.1 if you mean decimal.',
    ],
    ['1.2.3', 'PartCount', '"1.2.3" has 3 parts where an IPv4 address has four.'],
    ['16909060', 'PartCount', '"16909060" has 1 part where an IPv4 address has four.'],
    ['1.2.3.256', 'PartTooLarge', '"1.2.3.256" has the part 256; each part is a number from 0 to 255.'],
    [
      '0x7f.0.0.1',
      'NotAnAddress',
      '"0x7f.0.0.1" is not an IP address; write four numbers such as 10.6.1.21, or an IPv6 address.',
    ],
    ['10.0.0.0/8', 'PrefixUnexpected', '"10.0.0.0/8" has a prefix length where a single address is asked for.'],
    ['fe80::1%eth0', 'ZoneId', '"fe80::1%eth0" has a zone; write fe80::1 without it.'],
    ['::ffff:1.2.3.4', 'Ipv4Mapped', '"::ffff:1.2.3.4" is an IPv4 address written as IPv6; write 1.2.3.4.'],
    ['::FFFF:102:304', 'Ipv4Mapped', '"::FFFF:102:304" is an IPv4 address written as IPv6; write 1.2.3.4.'],
    [
      '1::2::3',
      'NotAnAddress',
      '"1::2::3" is not an IPv6 address; write eight groups of hexadecimal digits, with "::" at most once.',
    ],
  ];
  for (const [text, reason, message] of refused) {
    it(`refuses ${JSON.stringify(text)} as ${reason}`, () => {
      assert.deepEqual(parseIp(text), { ok: false, reason, message });
    });
  }

  const malformedIpv6 = [
    '1:2:3:4:5:6:7::8', // "::" that stands for nothing
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    ':1',
    '1:',
    ':::',
    '12345::',
    '1.2.3.4::',
    '::1.2.3.04',
    '1:2:3:4:5:6:7:1.2.3.4',
  ];
  for (const text of malformedIpv6) {
    it(`refuses ${text} as node:net does`, () => {
      const parsed = parseIp(text);
      assert.equal(isIP(text), 0);
      assert.equal(parsed.ok ? parsed.value : parsed.reason, 'NotAnAddress');
    });
  }

  it('keeps the message of a very long text short', () => {
    const long = '9'.repeat(100_000);
    for (const text of [long, `1.1.1.${long}`, `1.1.1.0${long}`, `fe80::1%${long}`, `::${long}`, ` ${long}`]) {
      const parsed = parseIp(text);
      assert.ok(!parsed.ok && parsed.message.length < 300);
    }
  });
});

describe('parseIpv4 and parseIpv6', () => {
  it('refuse the other family by name', () => {
    const asIpv4 = parseIpv4('fd00::1');
    const asIpv6 = parseIpv6('10.0.0.1');
    assert.ok(!asIpv4.ok && !asIpv6.ok);
    assert.equal(asIpv4.message, '"fd00::1" is an IPv6 address where an IPv4 address is asked for.');
    assert.equal(asIpv6.message, '"10.0.0.1" is an IPv4 address where an IPv6 address is asked for.');
    assert.deepEqual([asIpv4.reason, asIpv6.reason], ['WrongFamily', 'WrongFamily']);
  });

  it('take their own family', () => {
    assert.deepEqual(parseIpv4('10.0.0.1'), { ok: true, value: '10.0.0.1' });
    assert.deepEqual(parseIpv6('FD00::1'), { ok: true, value: 'fd00::1' });
  });
});

describe('ipBytes and ipOfBytes', () => {
  const someIp = fc.oneof(
    fc.nat({ max: 0xffffffff }).map((value) => ipAt(BigInt(value))),
    ipv6Value.filter((value) => !isMapped(value)).map((value) => ipAt(ipv6Line + value)),
  );

  it('are the two ways between an address and its bytes', () => {
    fc.assert(
      fc.property(someIp, (ip) => {
        const bytes = ipBytes(ip);
        assert.equal(bytes.length, isIpv4(ip) ? 4 : 16);
        assert.equal(ipOfBytes(bytes), ip);
      }),
    );
  });

  it('give the bytes that ip-address gives', () => {
    fc.assert(
      fc.property(someIp, (ip) => {
        const address = isIpv4(ip) ? new Address4(ip) : new Address6(ip);
        const digits = Buffer.from(ipBytes(ip)).toString('hex');
        assert.equal(BigInt(`0x${digits}`), address.bigInt());
      }),
    );
  });

  it('read bytes from the middle of a larger piece', () => {
    const piece = Buffer.from('ff0a060115fd06000000000000000000000000000eff', 'hex');
    assert.equal(ipOfBytes(piece.subarray(1, 5)), '10.6.1.21');
    assert.equal(ipOfBytes(piece.subarray(5, 21)), 'fd06::e');
  });

  it('have no address for a mapped one, and none for another number of bytes', () => {
    assert.equal(ipOfBytes(Buffer.from('00000000000000000000ffff0a060115', 'hex')), undefined);
    for (const length of [0, 3, 5, 15, 17]) assert.equal(ipOfBytes(new Uint8Array(length)), undefined);
  });
});

describe('compareIps', () => {
  it('orders by number, not by text, and IPv4 before IPv6', () => {
    const ips = ['fd00::10', '10.0.0.9', 'fd00::9', '10.0.0.10', '::'].map((text) => {
      const parsed = parseIp(text);
      assert.ok(parsed.ok);
      return parsed.value;
    });
    assert.deepEqual(ips.toSorted(compareIps), ['10.0.0.9', '10.0.0.10', '::', 'fd00::9', 'fd00::10']);
    assert.deepEqual(ips.filter(isIpv6).length, 3);
  });
});
