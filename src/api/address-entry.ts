/** Address entries: the strings that users write for one address, a range or a CIDR, and the rules about one of them. */
import { z } from 'zod';
import { isAddress, isEntry, isOrdered } from './cel.ts';
import { familyAt, type IpFamily, parsePosition } from './ip/address.ts';
import { parseCidrMasking } from './ip/cidr.ts';
import { parseEntry } from './ip/entry.ts';
import { withRules } from './rule.ts';

/** Lists of entries stop here, so that the API server can bound the cost of the rules about them. */
export const maxEntries = 1024;

/** 45 characters are the longest spelling of one address: six full groups and a dotted IPv4 tail. */
export const maxAddressLength = 45;

const examples = {
  4: 'an IPv4 address (10.6.1.55), a range (10.6.1.60-10.6.1.65) or a CIDR (10.6.1.64/28), without spaces or leading zeros',
  6: 'an IPv6 address (fd00::55), a range (fd00::60-fd00::65) or a CIDR (fd00::/120), without spaces or zone',
  any: 'an address (10.6.1.55 or fd00::55), a range (10.6.1.60-10.6.1.65) or a CIDR (10.6.1.64/28), without spaces or leading zeros',
} as const;

/** Returns the schema of one entry of the list `field`; without a family both are allowed, but not mixed in a range. */
export function addressEntry(field: string, family?: IpFamily) {
  const families: readonly IpFamily[] = family ? [family] : [4, 6];
  return withRules(
    z
      .string()
      .max(2 * maxAddressLength + 1)
      .describe(`One entry: ${examples[family ?? 'any']}.`),
    {
      rule: families.map((member) => isEntry('self', member)).join(' || '),
      message: `${field}: each entry must be ${examples[family ?? 'any']}`,
      holds: (text) => hasForm(text, families),
    },
    {
      rule: isOrdered('self', families),
      message: `${field}: the first address of a range must not be above the last`,
      holds: (text) => !hasForm(text, families) || parseEntry(text, parseCidrMasking).ok,
    },
  );
}

/** Returns the schema of an optional address of one family; the empty string means none, as existing manifests have it. */
export function optionalAddress(field: string, family: IpFamily, description: string) {
  const example = family === 4 ? '10.6.1.55' : 'fd00::55';
  return withRules(z.string().max(maxAddressLength).describe(description), {
    rule: `self == '' || ${isAddress('self', family)}`,
    message: `${field} must be one IPv${family} address such as ${example}, or empty`,
    holds: (text) => {
      const position = parsePosition(text);
      return text === '' || (position.ok && familyAt(position.value) === family);
    },
  }).optional();
}

/** Tells whether the text is an entry of one of the families. A range has its form whatever the order of its ends. */
function hasForm(text: string, families: readonly IpFamily[]): boolean {
  const entry = parseEntry(text, parseCidrMasking);
  if (entry.ok) return families.includes(familyAt(entry.value.interval.first));
  return entry.reason === 'RangeReversed' && families.includes(text.includes(':') ? 6 : 4);
}
