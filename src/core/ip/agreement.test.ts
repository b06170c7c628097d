/**
 * The schemas of src/api judge address text with a small reader of their own, because api imports nothing of ours.
 * If the two readers ever disagree, a manifest is admitted that core cannot use, or refused for no reason.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { readInterval } from '../../api/address.ts';
import { familyAt } from './address.ts';
import { parseCidrMasking } from './cidr.ts';
import { parseEntry } from './entry.ts';

const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(
    '',
    '1.2.3',
    '010.0.0.1',
    '1.2.3.256',
    ' 1.2.3.4',
    '::',
    '::ffff:1.2.3.4',
    '::1.2.3.4',
    'fe80::1%a',
    '1::2::3',
  ),
);
const entry = fc.oneof(
  address,
  fc.tuple(address, address).map((ends) => ends.join('-')),
  fc
    .tuple(address, fc.constantFrom('0', '8', '32', '33', '64', '128', '129', '08', '', 'x', '8/8'))
    .map((parts) => parts.join('/')),
  fc.tuple(address, address, address).map((ends) => ends.join('-')),
);

const IPV6_START = 1n << 128n;

it('core and the API schemas give the same verdict and the same addresses for any entry', () => {
  fc.assert(
    fc.property(entry, (text) => {
      const ours = parseEntry(text, parseCidrMasking);
      if (!ours.ok) return assert.equal(readInterval(text), undefined, text);
      const { kind, interval } = ours.value;
      const family = familyAt(interval.first);
      const base = family === 6 ? IPV6_START : 0n;
      assert.deepEqual(readInterval(text), {
        form: kind,
        family,
        first: interval.first - base,
        last: interval.last - base,
      });
    }),
    { numRuns: 2000 },
  );
});
