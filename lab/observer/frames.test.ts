import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../../src/core/testing/address.ts';
import { announcements, probe } from '../../src/dataplane/announce/frames.ts';
import { useOf } from './frames.ts';

const mac = '66:77:00:a0:0b:01';

for (const text of ['10.77.0.100', 'fd77::100']) {
  test(`an announcement of ${text} is a claim, a probe for it is nothing`, () => {
    for (const frame of announcements(ip(text), mac)) assert.deepEqual(useOf(frame), { mac, ip: text, kind: 'claim' });
    assert.equal(useOf(probe(ip(text), mac)), undefined);
  });
}

test('any other packet is traffic of its source', () => {
  const head = `ffffffffffff${mac.replaceAll(':', '')}`;
  const frame = (...parts: readonly string[]) => Buffer.from(parts.join('').replaceAll(' ', ''), 'hex');
  const udp4 = frame(head, '0800', '45000020 00000000 4011 0000', '0a4d0064', 'c633640a', '00010002 000c0000 00000000');
  assert.deepEqual(useOf(udp4), { mac, ip: '10.77.0.100', kind: 'traffic' });
  const udp6 = frame(
    head,
    '86dd',
    '60000000 000c 11 40',
    'fd770000000000000000000000000100',
    '20010db8005100000000000000000010',
    '00010002 000c0000 00000000',
  );
  assert.deepEqual(useOf(udp6), { mac, ip: 'fd77::100', kind: 'traffic' });
});
