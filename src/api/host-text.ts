/**
 * Host names and address lists of the proxy kinds, as regular expressions that RE2 (in CEL) and JavaScript read alike.
 * CEL cannot look at the items of a comma list at a cost it can bound, so here addresses are matched and not parsed.
 */
const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv4 = `${octet}([.]${octet}){3}`;

const group = '[0-9a-fA-F]{1,4}';
/** An IPv6 address in groups; the one with a dotted IPv4 tail is not accepted here. */
const ipv6 = [
  `(${group}:){7}${group}`,
  `(${group}:){1,7}:`,
  ...[1, 2, 3, 4, 5, 6].map((after) => `(${group}:){1,${7 - after}}(:${group}){1,${after}}`),
  `:((:${group}){1,7}|:)`,
].join('|');
const address = `(${ipv4}|${ipv6})`;

const label = '[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?';
/** At least two labels. The last one starts with a letter, so that a mistyped IPv4 address is not a name. */
const domain = `(${label}[.])+[a-zA-Z]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?`;

/** One address or several, each followed by a comma; spaces are ignored. Match it against the text with a comma added. */
export const addressListPattern = `^( *${address} *,)+$`;

/** A domain name such as db.example.com. */
export const domainPattern = `^${domain}$`;

/** A domain name, `*.` and a domain name, or an address. */
export const hostPattern = `^(([*][.])?${domain}|${address})$`;
