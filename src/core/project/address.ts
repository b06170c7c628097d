/** Reading of address texts inside objects, with findings that name the object and the field. */
import { type Finding, finding } from '../cluster/finding.ts';
import type { Eip } from '../cluster/view.ts';
import {
  emptySet,
  type IntervalSet,
  type Ip,
  type Ipv4,
  type Ipv6,
  type Parsed,
  parseCidrMasking,
  parseIp,
  parseIpv4,
  parseIpv6,
  parseSet,
} from '../ip/index.ts';

/** Reads a list of entries one by one, so that one that cannot be read does not take the others with it. */
export const readEntries = (
  texts: readonly string[] | undefined,
  parse: (texts: readonly string[]) => Parsed<IntervalSet>,
  where: string,
  problems: Finding[],
): IntervalSet => {
  const readable = (texts ?? []).filter((text, index) => {
    const parsed = parse([text]);
    if (!parsed.ok) problems.push(finding('SpecInvalid', `${where}[${index}]: ${parsed.message}`));
    return parsed.ok;
  });
  const set = parse(readable);
  return set.ok ? set.value : emptySet;
};

/** A list of addresses, ranges and CIDRs; absent is the empty set. */
export const readSet = (texts: readonly string[] | undefined, where: string, problems: Finding[]): IntervalSet =>
  texts === undefined || texts.length === 0
    ? emptySet
    : readEntries(texts, (entries) => parseSet(entries, parseCidrMasking), where, problems);

/** A given EIP; absent and empty texts are no address. */
export const readEip = (
  given: { readonly ipv4?: string | undefined; readonly ipv6?: string | undefined },
  where: string,
  problems: Finding[],
): Eip => ({
  ipv4: given.ipv4 ? parsedOrNone(parseIpv4(given.ipv4), `${where}.ipv4`, problems) : undefined,
  ipv6: given.ipv6 ? parsedOrNone(parseIpv6(given.ipv6), `${where}.ipv6`, problems) : undefined,
});

const parsedOrNone = <T>(parsed: Parsed<T>, where: string, problems: Finding[]): T | undefined => {
  if (parsed.ok) return parsed.value;
  problems.push(finding('SpecInvalid', `${where}: ${parsed.message}`));
  return undefined;
};

/** An address of a status; what cannot be read counts as not there. */
export const ipv4OrNone = (text: string | undefined): Ipv4 | undefined => {
  const parsed = parseIpv4(text ?? '');
  return parsed.ok ? parsed.value : undefined;
};

/** The same for IPv6. */
export const ipv6OrNone = (text: string | undefined): Ipv6 | undefined => {
  const parsed = parseIpv6(text ?? '');
  return parsed.ok ? parsed.value : undefined;
};

/** The same for either family. */
export const ipOrNone = (text: string | undefined): Ip | undefined => {
  const parsed = parseIp(text ?? '');
  return parsed.ok ? parsed.value : undefined;
};
