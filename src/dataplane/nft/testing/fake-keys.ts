/** Keys and values of elements, as the fake checks and lists them. */
import { overlaps, parseCidr, parseIpv4, parseIpv6, parseSet } from '../../../core/ip/index.ts';

/** True if the text is a key of that type: `ipv4_addr`, `mark . ipv6_addr`. Ranges are fine everywhere. */
export const isKeyOf = (type: string, key: string): boolean => {
  const types = type.split(' . ');
  const parts = key.split(' . ');
  return types.length === parts.length && parts.every((part, index) => isPartOf(types[index] ?? '', part));
};

const isPartOf = (type: string, part: string): boolean => {
  if (type === 'mark') return /^0x[0-9a-f]{8}$/.test(part);
  if (type === 'ether_addr') return /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(part);
  const [address = ''] = part.split(/[-/]/);
  return type === 'ipv4_addr' ? parseIpv4(address).ok : parseIpv6(address).ok;
};

/** A key that overlaps the one before it, in the order of addresses; only within the same class. */
export const firstOverlap = (keys: Iterable<string>): string | undefined => {
  const rangesByClass = new Map<string, [string, ReturnType<typeof rangeOf>][]>();
  for (const key of keys) {
    const at = key.indexOf(' . ');
    const className = at < 0 ? '' : key.slice(0, at);
    const ranges = rangesByClass.get(className) ?? [];
    ranges.push([key, rangeOf(at < 0 ? key : key.slice(at + 3))]);
    rangesByClass.set(className, ranges);
  }
  for (const ranges of rangesByClass.values()) {
    ranges.sort(([, a], [, b]) => Number((a.intervals[0]?.first ?? 0n) - (b.intervals[0]?.first ?? 0n)));
    for (const [index, [key, range]] of ranges.entries()) {
      const before = ranges[index - 1]?.[1];
      if (before !== undefined && overlaps(before, range)) return key;
    }
  }
  return undefined;
};

const rangeOf = (text: string) => {
  const parsed = parseSet([text], parseCidr);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};

/** A key or value as nft prints it in JSON. */
export const keyJson = (text: string): unknown => {
  if (text.includes(' . ')) return { concat: text.split(' . ').map(keyJson) };
  if (/^0x/.test(text)) return Number(text);
  const [first = '', last] = text.split('-');
  if (last !== undefined) return { range: [first, last] };
  const [addr = '', len] = text.split('/');
  return len === undefined ? addr : { prefix: { addr, len: Number(len) } };
};
