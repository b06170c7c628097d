import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseIp } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import { announcements, probe, readClaim } from './frames.ts';

const MAC = '66:77:00:a0:0b:01';
const V4 = ip('10.6.1.21');
const V6 = ip('fd06::e:15');
/** The bytes of a frame, a header or field on each line. */
const bytes = (...parts: readonly string[]): string => parts.join('').replaceAll(' ', '');

test('gratuitous ARP leaves as request and as reply', () => {
  const [request, reply, ...rest] = announcements(V4, MAC);
  assert.equal(
    request?.toString('hex'),
    bytes('ffffffffffff 667700a00b01 0806', '0001 0800 06 04 0001', '667700a00b01 0a060115', '000000000000 0a060115'),
  );
  assert.equal(
    reply?.toString('hex'),
    bytes('ffffffffffff 667700a00b01 0806', '0001 0800 06 04 0002', '667700a00b01 0a060115', '667700a00b01 0a060115'),
  );
  assert.deepEqual(rest, []);
});

test('an unsolicited neighbour advertisement goes to all nodes, overrides, and names the MAC address', () => {
  const [advertisement, ...rest] = announcements(V6, MAC);
  assert.equal(
    advertisement?.toString('hex'),
    bytes(
      '333300000001 667700a00b01 86dd',
      '60000000 0020 3a ff',
      'fd06 0000 0000 0000 0000 0000 000e 0015',
      'ff02 0000 0000 0000 0000 0000 0000 0001',
      '88 00 ea33 20000000',
      'fd06 0000 0000 0000 0000 0000 000e 0015',
      '02 01 667700a00b01',
    ),
  );
  assert.deepEqual(rest, []);
});

test('an ARP probe has the sender 0.0.0.0, so that nobody learns from it', () => {
  assert.equal(
    probe(V4, MAC).toString('hex'),
    bytes('ffffffffffff 667700a00b01 0806', '0001 0800 06 04 0001', '667700a00b01 00000000', '000000000000 0a060115'),
  );
});

test('an IPv6 probe is the solicitation of duplicate address detection', () => {
  assert.equal(
    probe(V6, MAC).toString('hex'),
    bytes(
      '3333ff0e0015 667700a00b01 86dd',
      '60000000 0018 3a ff',
      '0000 0000 0000 0000 0000 0000 0000 0000',
      'ff02 0000 0000 0000 0000 0001 ff0e 0015',
      '87 00 7d5b 00000000',
      'fd06 0000 0000 0000 0000 0000 000e 0015',
    ),
  );
});

const macs = fc
  .array(fc.integer({ min: 0, max: 255 }), { minLength: 6, maxLength: 6 })
  .map((octets) => octets.map((octet) => octet.toString(16).padStart(2, '0')).join(':'));
const ips = fc
  .oneof(
    fc.ipV4().filter((text) => text !== '0.0.0.0'),
    fc.ipV6(),
  )
  .map(parseIp)
  .filter((parsed) => parsed.ok)
  .map(({ value }) => value);

test('what is announced is read back, whatever the addresses', () => {
  fc.assert(
    fc.property(ips, macs, (ip, mac) => {
      for (const frame of announcements(ip, mac)) assert.deepEqual(readClaim(frame), { ip, mac, sender: mac });
    }),
  );
});

test('a probe claims nothing', () => {
  fc.assert(fc.property(ips, macs, (ip, mac) => assert.equal(readClaim(probe(ip, mac)), undefined)));
});

test('an ordinary ARP answer and an ordinary request claim the address of their sender', () => {
  const [request] = announcements(V4, MAC);
  const ordinary = Buffer.from(request ?? []);
  ordinary.set([10, 6, 0, 200], 38);
  assert.deepEqual(readClaim(ordinary), { ip: V4, mac: MAC, sender: MAC });
});

test('a machine that speaks for another is told apart from it', () => {
  for (const frame of [...announcements(V4, MAC), ...announcements(V6, MAC)]) {
    const relayed = Buffer.from(frame);
    relayed.set([2, 0, 0, 0, 0, 7], 6);
    assert.deepEqual(readClaim(relayed)?.mac, MAC);
    assert.deepEqual(readClaim(relayed)?.sender, '02:00:00:00:00:07');
  }
});

test('an advertisement without a MAC address in it is the claim of its sender', () => {
  const [frame = Buffer.alloc(0)] = announcements(V6, MAC);
  const bare = Buffer.from(frame.subarray(0, 78));
  bare.writeUInt16BE(24, 18);
  assert.deepEqual(readClaim(bare), { ip: V6, mac: MAC, sender: MAC });
});

test('an advertisement that a router let through counts for nothing', () => {
  const [frame = Buffer.alloc(0)] = announcements(V6, MAC);
  const routed = Buffer.from(frame);
  routed.writeUInt8(254, 21);
  assert.equal(readClaim(routed), undefined);
});

test('cut, padded and random frames are read or not, but never a fault', () => {
  for (const frame of [...announcements(V4, MAC), ...announcements(V6, MAC)]) {
    for (let length = 0; length < frame.length; length += 1) readClaim(frame.subarray(0, length));
    assert.notEqual(readClaim(Buffer.concat([frame, Buffer.alloc(18)])), undefined, 'switches pad short frames');
  }
  const start = fc.constantFrom(...announcements(V4, MAC), ...announcements(V6, MAC));
  const noise = fc.array(fc.tuple(fc.nat(85), fc.nat(255)), { maxLength: 8 });
  fc.assert(
    fc.property(start, noise, (frame, changes) => {
      const noisy = Buffer.from(frame);
      for (const [at, value] of changes) if (at < noisy.length) noisy[at] = value;
      readClaim(noisy);
    }),
  );
});
