import assert from 'node:assert/strict';
import { isIPv4, isIPv6 } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { addressListPattern, domainPattern, hostPattern } from './host-text.ts';

const isAddressList = (text: string) => new RegExp(addressListPattern).test(`${text},`);

describe('addressListPattern', () => {
  test('agrees with the IPv6 parser of Node on texts of groups and colons', () => {
    const part = fc.constantFrom('1', 'ffff', 'FD00', '0', ':', '::', ':', ':', '10000');
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 16 }), (parts) => {
        const text = parts.join('');
        assert.equal(isAddressList(text), isIPv6(text), text);
      }),
      { numRuns: 5000 },
    );
  });
  test('agrees with the IPv4 parser of Node', () => {
    const part = fc.constantFrom('0', '1', '25', '255', '256', '01', '', '1000');
    fc.assert(
      fc.property(fc.array(part, { minLength: 3, maxLength: 5 }), (parts) => {
        const text = parts.join('.');
        assert.equal(isAddressList(text), isIPv4(text), text);
      }),
      { numRuns: 2000 },
    );
  });
  test('takes several with spaces, and no empty item', () => {
    for (const text of ['10.0.0.1,10.0.0.2', ' 10.0.0.1 , fd00::1', '::,::1']) assert.ok(isAddressList(text), text);
    for (const text of ['', ',', '10.0.0.1,', '10.0.0.1,,10.0.0.2', '10.0.0.1 10.0.0.2'])
      assert.ok(!isAddressList(text), text);
  });
});

test('domainPattern takes names and refuses what looks like an address', () => {
  const pattern = new RegExp(domainPattern);
  for (const text of ['db.example.com', 'A.b', 'x--1.example.co', '1.example.com']) assert.match(text, pattern);
  for (const text of ['db', '10.0.0.300', '.a.b', 'a..b', '-a.b', 'a-.b', 'a.b.', 'a_b.c', 'a.b/c', '*.a.b']) {
    assert.doesNotMatch(text, pattern);
  }
});

test('hostPattern takes one wildcard at the front, and addresses', () => {
  const pattern = new RegExp(hostPattern);
  for (const text of ['*.example.com', 'api.example.com', '198.51.100.7', 'fd00::1']) assert.match(text, pattern);
  for (const text of ['*', '*.com.*', 'a.*.com', 'http://a.b', 'a.b:80', '**.a.b']) assert.doesNotMatch(text, pattern);
});
