import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Address4, Address6 } from 'ip-address';
import { readAddress, readInterval } from './address.ts';

const value4 = fc.bigInt({ min: 0n, max: (1n << 32n) - 1n });
/** Many zero groups, so that `::` occurs at every place; never IPv4-mapped. */
const value6 = fc
  .array(fc.oneof(fc.constant(0n), fc.constant(0xffffn), fc.bigInt({ min: 0n, max: 0xffffn })), {
    minLength: 8,
    maxLength: 8,
  })
  .map((groups) => groups.reduce((value, group) => (value << 16n) | group, 0n))
  .filter((value) => value >> 32n !== 0xffffn);

describe('readAddress', () => {
  test('reads every spelling that another library prints', () => {
    fc.assert(
      fc.property(value4, (value) => {
        assert.deepEqual(readAddress(Address4.fromBigInt(value).correctForm()), { family: 4, value });
      }),
    );
    fc.assert(
      fc.property(value6, (value) => {
        const address = Address6.fromBigInt(value);
        for (const text of [address.correctForm(), address.canonicalForm(), address.canonicalForm().toUpperCase()]) {
          assert.deepEqual(readAddress(text), { family: 6, value }, text);
        }
        assert.deepEqual(readAddress(address.to4in6()), { family: 6, value }, address.to4in6());
      }),
    );
  });

  for (const text of [
    '',
    ' ',
    '10.0.0',
    '010.0.0.1',
    '10.0.0.256',
    '10.0.0.1 ',
    '0x0a000001',
    'fd00::1%eth0',
    'fd00',
  ]) {
    test(`refuses "${text}"`, () => assert.equal(readAddress(text), undefined));
  }
  test('refuses IPv4-mapped addresses, as CEL does', () => {
    assert.equal(readAddress('::ffff:10.0.0.1'), undefined);
    assert.equal(readAddress('::FFFF:a00:1'), undefined);
  });
});

describe('readInterval', () => {
  const ten = 10n << 24n;
  test('reads the three forms', () => {
    assert.deepEqual(readInterval('10.0.0.1'), { form: 'address', family: 4, first: ten + 1n, last: ten + 1n });
    assert.deepEqual(readInterval('10.0.0.1-10.0.0.9'), { form: 'range', family: 4, first: ten + 1n, last: ten + 9n });
    assert.deepEqual(readInterval('10.0.0.9/28'), { form: 'cidr', family: 4, first: ten, last: ten + 15n });
    assert.equal(readInterval('::/0')?.last, (1n << 128n) - 1n);
  });
  for (const text of [
    '10.0.0.9-10.0.0.1',
    '10.0.0.1-fd00::1',
    '10.0.0.1-',
    '-',
    '10.0.0.0/33',
    '10.0.0.0/08',
    'fd00::/',
  ]) {
    test(`refuses "${text}"`, () => assert.equal(readInterval(text), undefined));
  }
  test('takes a range exactly when its ends are in order', () => {
    fc.assert(
      fc.property(value6, value6, (a, b) => {
        const text = `${Address6.fromBigInt(a).correctForm()}-${Address6.fromBigInt(b).correctForm()}`;
        assert.equal(readInterval(text) !== undefined, a <= b);
      }),
    );
  });
});
