/**
 * Rules about the two pools of a gateway together. An IPv4 CIDR counts without its network and broadcast address, as
 * the implementation that existing manifests were written for counts it. CEL cannot count every pool, so its half of
 * the rules refuses only what is certainly wrong; the admission webhook counts exactly:
 *
 * - A pool holds at least as many addresses as its largest entry, and exactly as many as it has entries when these
 *   are at most 32 different single addresses. It holds at most the sum of its entries, which may overlap.
 * - An IPv6 range is counted when both ends are equal up to the last colon; otherwise its size is unknown.
 */
import { from, isAddress, isEntry, numbers, to, value4 } from './cel.ts';
import { type Interval, type IpFamily, parsePosition } from './ip/address.ts';
import { parseCidrMasking } from './ip/cidr.ts';
import { type Entry, parseEntry, usable } from './ip/entry.ts';
import type { Rule } from './rule.ts';

interface PoolFields {
  readonly ipv4?: readonly string[] | undefined;
  readonly ipv6?: readonly string[] | undefined;
  readonly ipv4DefaultEIP?: string | undefined;
  readonly ipv6DefaultEIP?: string | undefined;
}

/** Far above the number of IPv4 addresses: how large an entry of unknown or huge size counts at most. */
const hugeBits = 40;
const distinctLimit = 32;

/** How many addresses a CIDR with so many host bits gives, from 0 host bits on. */
const cidrSizes = {
  4: Array.from({ length: 33 }, (_, bits) => (bits > 1 ? 2 ** bits - 2 : 2 ** bits)),
  6: Array.from({ length: hugeBits + 1 }, (_, bits) => 2 ** bits),
} as const;

/** The number that the at most four hexadecimal digits of x between two positions stand for. */
const hex = (x: string, start: string, end: string) =>
  `[0, 1, 2, 3].map(j, ${end} - 1 - j >= ${start} ? '0123456789abcdef'.indexOf(${x}.substring(${end} - 1 - j, ${end} - j).lowerAscii()) * [1, 16, 256, 4096][j] : 0).sum()`;

const dash = "x.indexOf('-')";
const firstTail = `x.lastIndexOf(':', ${dash}) + 1`;
const lastTail = "x.lastIndexOf(':') + 1";

/** The last groups of both ends of the IPv6 range x, as numbers. */
const firstGroup = hex('x', firstTail, dash);
const lastGroup = hex('x', lastTail, 'x.size()');

/** True when the ends of the IPv6 range x differ in the last group at most, so that CEL can count it. */
const isCountable6 = `(!x.contains('.') && x.substring(0, ${firstTail}) == x.substring(${dash} + 1, ${lastTail}))`;

const rangeSize = (family: IpFamily, unknownSize: number) =>
  family === 4
    ? `${value4(to('x'))} - ${value4(from('x'))} + 1`
    : `(${isCountable6} ? ${lastGroup} - ${firstGroup} + 1 : ${unknownSize})`;

/** The number of addresses in each entry of a pool. */
const sizes = (family: IpFamily, unknownSize: number) => {
  const hostBits = `${family === 4 ? 32 : 128} - cidr(x).prefixLength()`;
  const index = family === 4 ? hostBits : `${hostBits} > ${hugeBits} ? ${hugeBits} : ${hostBits}`;
  const cidrSize = `[${cidrSizes[family].join(', ')}][${index}]`;
  return `self.ipv${family}.map(x, x.contains('-') ? ${rangeSize(family, unknownSize)} : x.contains('/') ? ${cidrSize} : 1)`;
};

/** True when the pool is a short list of single addresses, all different: then it holds as many as it has entries. */
const isDistinct = (family: IpFamily) => {
  const list = `self.ipv${family}`;
  const values = `${list}.map(x, ${family === 4 ? value4('x') : "cidr(x + '/128')"})`;
  const differ = family === 4 ? 'v[i] != v[j]' : '!v[i].containsIP(v[j].ip())';
  const all = numbers(0, distinctLimit - 1);
  return `${list}.size() <= ${distinctLimit} && ${list}.all(x, isIP(x)) && [${values}].all(v, [${all}].all(i, [${all}].all(j, j <= i || j >= v.size() || ${differ})))`;
};

const atLeast = (family: IpFamily) => `(${isDistinct(family)} ? self.ipv${family}.size() : ${sizes(family, 1)}.max())`;
const atMost = (family: IpFamily) => `${sizes(family, 2 ** hugeBits)}.sum()`;

const isEmpty = (family: IpFamily) => `!has(self.ipv${family}) || self.ipv${family}.size() == 0`;
const isReadable = (family: IpFamily) => `self.ipv${family}.all(x, ${isEntry('x', family)})`;

/** Both pools, when given, must hold the same number of addresses: a policy gets one of each. */
export const equalPools: Rule<PoolFields> = {
  rule: `${isEmpty(4)} || ${isEmpty(6)} || !(${isReadable(4)} && ${isReadable(6)}) || (${atLeast(4)} <= ${atMost(6)} && ${atLeast(6)} <= ${atMost(4)})`,
  message: 'ipv4 and ipv6 must hold the same number of addresses when both are given',
  holds: ({ ipv4 = [], ipv6 = [] }) => {
    if (ipv4.length === 0 || ipv6.length === 0) return true;
    const four = countOf(ipv4);
    const six = countOf(ipv6);
    return four === undefined || six === undefined || four === six;
  },
};

/** The default EIP of a family must be in the pool of that family. */
export function defaultInPool(family: IpFamily): Rule<PoolFields> {
  const list = `self.ipv${family}`;
  const field = `ipv${family}DefaultEIP` as const;
  const eip = `self.${field}`;
  const group = hex(eip, `${eip}.lastIndexOf(':') + 1`, `${eip}.size()`);
  const inRange =
    family === 4
      ? `${value4(from('x'))} <= ${value4(eip)} && ${value4(eip)} <= ${value4(to('x'))}`
      : `${eip}.contains('.') || !${isCountable6} || (cidr(${from('x')} + '/112').containsIP(${eip}) && ${firstGroup} <= ${group} && ${group} <= ${lastGroup})`;
  const isSame = family === 4 ? `x == ${eip}` : `cidr(x + '/128').containsIP(${eip})`;
  const inEntry = `x.contains('-') ? (${inRange}) : x.contains('/') ? cidr(x).containsIP(${eip}) : ${isSame}`;
  const isGiven = `has(${eip}) && ${isAddress(eip, family)}`;
  return {
    rule: `!(${isGiven}) || (has(${list}) && (!${isReadable(family)} || ${list}.exists(x, ${inEntry})))`,
    message: `${field} must be inside ipv${family}`,
    messageExpression: `'${field} ' + ${eip} + ' is not in the pool: it must be inside ipv${family}'`,
    fieldPath: `.${field}`,
    holds: (pools) => {
      const eip = parsePosition(pools[field] ?? '');
      const entries = entriesOf(pools[`ipv${family}`] ?? []);
      if (!eip.ok || entries === undefined) return true;
      return entries.some(({ interval }) => interval.first <= eip.value && eip.value <= interval.last);
    },
  };
}

/** Counts the addresses of a pool, none of them twice; undefined when an entry is not readable. */
function countOf(texts: readonly string[]): bigint | undefined {
  const intervals = entriesOf(texts)?.map(usable);
  if (intervals === undefined) return undefined;
  let count = 0n;
  let end = -1n;
  for (const { first, last } of intervals.toSorted(byFirst)) {
    if (last <= end) continue;
    count += last - (first > end ? first - 1n : end);
    end = last;
  }
  return count;
}

/** Reads the entries of a pool; undefined when one of them is not readable. */
function entriesOf(texts: readonly string[]): readonly Entry[] | undefined {
  const parsed = texts.map((text) => parseEntry(text, parseCidrMasking)).filter((entry) => entry.ok);
  return parsed.length < texts.length ? undefined : parsed.map(({ value }) => value);
}

function byFirst(a: Interval, b: Interval): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}
