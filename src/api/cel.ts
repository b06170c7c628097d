/**
 * Pieces of CEL about addresses, as text. Every function takes the text of an expression and returns the text of one.
 *
 * The API server refuses a CRD whose rules could cost too much, and it knows the size of a string only if it comes
 * from a field with maxLength, from a literal, or from `substring`, `trim` and `+` over such. The items of `split()`
 * and of literal lists count as unbounded, except as argument of `int()`. That is why this file cuts strings with
 * `substring` and repeats expressions instead of binding them (Kubernetes 1.31, apiserver/pkg/cel/library/cost.go).
 */
import type { IpFamily } from './ip/address.ts';

/** True when x is one address of the family. */
export const isAddress = (x: string, family: IpFamily) => `(isIP(${x}) && ip(${x}).family() == ${family})`;

/** True when x is a CIDR of the family. Host bits may be set: existing manifests have them. */
export const isCidr = (x: string, family: IpFamily) => `(isCIDR(${x}) && cidr(${x}).ip().family() == ${family})`;

/** True when x is an address, a range (in either order) or a CIDR of the family. */
export const isEntry = (x: string, family: IpFamily) =>
  `(${x}.contains('-') ? ${isAddress(from(x), family)} && ${isAddress(to(x), family)} : ${isAddress(x, family)} || ${isCidr(x, family)})`;

/** The text before the dash. Fails without a dash: ask `contains('-')` first. */
export const from = (x: string) => `${x}.substring(0, ${x}.indexOf('-'))`;

/** The text after the dash, the whole text without one. */
export const to = (x: string) => `${x}.substring(${x}.indexOf('-') + 1)`;

/** True unless x is a range of two addresses of one family whose first is above its second. */
export const isOrdered = (x: string, families: readonly IpFamily[]) => {
  const cases = families.map((family) => {
    const isRange = `${isAddress(from(x), family)} && ${isAddress(to(x), family)}`;
    return `!(${isRange}) || ${family === 4 ? notAbove4(from(x), to(x)) : notAbove6(from(x), to(x))}`;
  });
  return `!${x}.contains('-') || ${cases.map((text) => `(${text})`).join(' && ')}`;
};

/** The number an IPv4 address stands for. */
export const value4 = (x: string) =>
  `(int(${x}.split('.')[0]) * 16777216 + int(${x}.split('.')[1]) * 65536 + int(${x}.split('.')[2]) * 256 + int(${x}.split('.')[3]))`;

const notAbove4 = (a: string, b: string) => `${value4(a)} <= ${value4(b)}`;

/**
 * The network of x whose prefix length is the index-th multiple of step. The lengths are cut out of one literal with
 * four characters each, the only way to write '/' + number whose size the API server knows.
 */
const network = (x: string, step: number, index: string) => {
  const lengths = Array.from({ length: 128 / step + 1 }, (_, i) => `/${i * step}`.padEnd(4)).join('');
  return `cidr(${x} + '${lengths}'.substring(4 * (${index}), 4 * (${index}) + 4).trim())`;
};

/**
 * IPv6 has no numbers in CEL, but it has prefixes. Let k be the number of leading bits that a and b share. If they
 * are not equal, they differ in bit k+1, and a is below b exactly when a lies in the lower half of its /k network,
 * which is when the first address of that network lies in the /(k+1) network of a. k is found in three steps of
 * sixteen, four and single bits, to keep the cost of a rule over 1,024 entries under the limit.
 */
const notAbove6 = (a: string, b: string) => {
  const shares = (step: number, index: string) => `${network(a, step, index)}.containsIP(${b})`;
  const words = `[1, 2, 3, 4, 5, 6, 7].filter(i, ${shares(16, 'i')}).size()`;
  const nibbles = `4 * w + [1, 2, 3].filter(i, ${shares(4, '4 * w + i')}).size()`;
  const bits = `4 * n + [1, 2, 3].filter(i, ${shares(1, '4 * n + i')}).size()`;
  const isInLowerHalf = `${network(a, 1, 'k + 1')}.containsIP(${network(a, 1, 'k')}.masked().ip())`;
  const isBelow = `[${words}].exists(w, [${nibbles}].exists(n, [${bits}].exists(k, ${isInLowerHalf})))`;
  return `(cidr(${a} + '/128').containsIP(${b}) || ${isBelow})`;
};

/** The text `first, first + 1, ..., last`. */
export const numbers = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i).join(', ');
