import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Ip, ipOfBytes } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import type { FilterStep } from '../libc.ts';
import { claimFilter } from './claim-filter.ts';
import { announcements, probe, question } from './frames.ts';

const MAC = '66:00:00:00:00:01';

/** What the kernel does with a filter: how many bytes of the frame it keeps. A load behind the end of the frame refuses it. */
const run = (steps: readonly FilterStep[], frame: Buffer): number => {
  let value = 0;
  for (let at = 0; ; at += 1) {
    const [code, ifTrue, ifFalse, operand] = steps[at] ?? assert.fail(`no step ${at}`);
    if (code === 0x06) return operand;
    if (code === 0x20 || code === 0x30) {
      const width = code === 0x20 ? 4 : 1;
      if (operand + width > frame.length) return 0;
      value = frame.readUIntBE(operand, width);
    } else if (code === 0x05) at += operand;
    else {
      const isTrue = code === 0x15 ? value === operand : code === 0x25 ? value > operand : value >= operand;
      at += isTrue ? ifTrue : ifFalse;
    }
  }
};
const keeps = (ips: readonly Ip[], frame: Buffer): boolean =>
  run(claimFilter(frame.readUInt16BE(12) === 0x0806 ? 4 : 6, ips, 256), frame) > 0;
const claimOf = (claimed: Ip): Buffer => announcements(claimed, MAC)[0] ?? assert.fail();

test('claims of the addresses get in, those of their neighbours do not', () => {
  const four = ['10.6.0.100', '10.6.0.101', '10.6.0.103', '255.255.255.255', '0.0.0.1'].map((text) => ip(text));
  const six = ['fd06::100', 'fd06::101', 'fd06::103', 'fd06::ffff:ffff', 'fd06::'].map((text) => ip(text));
  for (const own of [...four, ...six]) assert.ok(keeps(own.includes(':') ? six : four, claimOf(own)), own);
  for (const other of ['10.6.0.99', '10.6.0.102', '10.6.0.104', '0.0.0.2'])
    assert.ok(!keeps(four, claimOf(ip(other))), other);
  for (const other of ['fd06::99', 'fd06::102', 'fd06::104', 'fd06::1'])
    assert.ok(!keeps(six, claimOf(ip(other))), other);
});

test('whoever only asks for an address claims nothing, and whoever asks in its name does', () => {
  const own = [ip('10.6.0.100'), ip('fd06::100')] as const;
  for (const one of own) assert.ok(!keeps([one], probe(one, MAC)), one);
  assert.ok(!keeps([own[1]], question(own[1], MAC)), 'it asks in the name of a link-local address');
  const inItsName = question(ip('fd06::1'), MAC);
  Buffer.from('fd060000000000000000000000000100', 'hex').copy(inItsName, 22);
  assert.ok(keeps([own[1]], inItsName));
});

test('nothing gets in when no address is to be heeded, nor what is not neighbour discovery', () => {
  assert.ok(!keeps([], claimOf(ip('10.6.0.100'))));
  assert.ok(!keeps([], claimOf(ip('fd06::100'))));
  const udp = claimOf(ip('fd06::100'));
  udp[20] = 17;
  assert.ok(!keeps([ip('fd06::100')], udp));
});

test('no claim is ever kept out, however many addresses there are and wherever they lie', () => {
  const address = fc
    .uint8Array({ minLength: 4, maxLength: 4 })
    .map((bytes) => ipOfBytes(bytes))
    .filter((one) => one !== undefined && one !== '0.0.0.0')
    .map((one) => one ?? assert.fail());
  fc.assert(
    fc.property(fc.array(address, { minLength: 1, maxLength: 300 }), (ips) => {
      const filter = claimFilter(4, ips, 256);
      assert.ok(filter.length <= 4096);
      for (const [, ifTrue, ifFalse] of filter) assert.ok(ifTrue < 256 && ifFalse < 256);
      for (const one of ips) assert.ok(run(filter, claimOf(one)) > 0, one);
    }),
    { numRuns: 50 },
  );
});
