/**
 * Listing: what the kernel says about the network of this node, ours and everybody's, as far as we look at it. Three
 * programs are started for it, whatever the number of routes.
 */
import { EgressError } from '../../api/error.ts';
import type { Ip, IpFamily } from '../../core/ip/index.ts';
import type { ProgramResult, Programs } from '../program.ts';
import type { Access } from './access.ts';
import { type Fields, includes, ipOf, listOf, numberOf, objectOf, parseDocuments, textOf } from './json.ts';

export interface Listing {
  readonly links: readonly LinkListed[];
  readonly rules: readonly RuleListed[];
  /** Without those of the table `local`. */
  readonly routes: readonly RouteListed[];
  /** Permanent ones only. */
  readonly neighbours: readonly { readonly device: string; readonly ip: Ip; readonly mac: string }[];
  readonly proxies: readonly ProxyListed[];
  /** Those of the tunnel device only. */
  readonly forwardings: readonly { readonly mac: string; readonly to: Ip }[];
}

export interface LinkListed {
  readonly name: string;
  /** `vxlan`, `bridge`, `veth`; undefined for a network card. */
  readonly kind: string | undefined;
  readonly isUp: boolean;
  readonly isEthernet: boolean;
  readonly mtu: number;
  readonly mac: string;
  /** The text that somebody has tagged the device with. */
  readonly alias: string | undefined;
  /** The bridge or bond that it is a port of. */
  readonly master: string | undefined;
  /** Present for kind vxlan. */
  readonly vxlan: VxlanListed | undefined;
  readonly addresses: readonly AddressListed[];
}

export interface VxlanListed {
  readonly id: number | undefined;
  readonly port: number | undefined;
  readonly parent: string | undefined;
  readonly local: Ip | undefined;
  readonly hasGbp: boolean;
  readonly isLearning: boolean;
  /** Whether the outer UDP packets carry checksums. */
  readonly hasChecksums: boolean;
}

export interface AddressListed {
  readonly ip: Ip;
  readonly prefixLength: number;
  readonly isLinkLocal: boolean;
  /** IPv4: goes away together with the first address of its network. */
  readonly isSecondary: boolean;
  /** IPv6: duplicate detection has not ended, or has found one. */
  readonly isTentative: boolean;
  /** The kernel never takes it away by itself. */
  readonly isForever: boolean;
  /** IPv6: the node does not choose it for connections of its own. */
  readonly isDeprecated: boolean;
}

export interface RuleListed {
  readonly family: IpFamily;
  readonly priority: number;
  readonly mark: number | undefined;
  readonly mask: number;
  /** Number of the table; undefined for a rule that does something else. */
  readonly table: number | undefined;
  readonly goto: number | undefined;
  /** It looks at more than the mark. */
  readonly isNarrower: boolean;
}

export interface RouteListed {
  readonly family: IpFamily;
  readonly table: number;
  /** `unicast`, `unreachable`, `blackhole`. */
  readonly type: string;
  /** `default`, an address or a CIDR. */
  readonly destination: string;
  readonly via: Ip | undefined;
  /** The device, of several the first. */
  readonly device: string | undefined;
  readonly metric: number;
  readonly source: Ip | undefined;
  /** More than one way, or one that we would not have made. */
  readonly isComplex: boolean;
}

export interface ProxyListed {
  readonly device: string;
  readonly ip: Ip;
  /** The number that whoever made it signed it with. */
  readonly protocol: number | undefined;
}

/** Reads the kernel. NETWORK_UNREADABLE when a program is missing, fails or prints what nobody understands. */
export const readListing = async (programs: Programs, tunnel: string): Promise<Listing> => {
  const [main, ipv6, bridge] = await Promise.all([
    readBatch(
      programs,
      ['ip', '-j', '-d'],
      ['addr show', 'rule show', 'route show table all', 'neigh show nud permanent'],
    ),
    readBatch(programs, ['ip', '-6', '-j', '-d'], ['rule show', 'neigh show proxy']),
    programs.run(['bridge', '-j', 'fdb', 'show', 'dev', tunnel]),
  ]);
  const [links = [], rules4 = [], routes = [], neighbours = []] = main;
  const [rules6 = [], proxies = []] = ipv6;
  return {
    links: links.map(linkOf),
    rules: [...rules4.map((fields) => ruleOf(fields, 4)), ...rules6.map((fields) => ruleOf(fields, 6))],
    routes: routes.flatMap(routeOf),
    neighbours: neighbours.flatMap(neighbourOf),
    proxies: proxies.flatMap(proxyOf),
    forwardings: forwardingsOf(bridge),
  };
};

/** The proxy entries alone: the kernel does not tell anybody when one goes, so they are asked for often. */
export const readProxies = async ({ programs, socket }: Access): Promise<readonly ProxyListed[]> => {
  const told = socket?.proxies();
  if (told !== undefined) return told;
  const [proxies = []] = await readBatch(programs, ['ip', '-6', '-j', '-d'], [PROXY_LINE]);
  return proxies.flatMap(proxyOf);
};

const PROXY_LINE = 'neigh show proxy';

const readBatch = async (
  programs: Programs,
  program: readonly string[],
  lines: readonly string[],
): Promise<readonly (readonly Fields[])[]> => {
  const ended = await programs.run([...program, '-batch', '-'], { input: `${lines.join('\n')}\n` });
  const documents = ended.code === 0 ? parseDocuments(ended.stdout) : undefined;
  if (documents?.length === lines.length) return documents;
  // The kernel was started without IPv6.
  if (/Address family not supported/.test(ended.stderr)) return [];
  throw unreadable(program.join(' '), ended);
};

const unreadable = (command: string, ended: ProgramResult): EgressError => {
  const why =
    ended.stderr.trim().split('\n', 1)[0] || `it ended with ${ended.code} and printed something else than lists`;
  return new EgressError('NETWORK_UNREADABLE', `cannot read the network of the node with "${command}": ${why}`, {
    data: { command, code: ended.code },
  });
};

const linkOf = (fields: Fields): LinkListed => {
  const info = objectOf(fields, 'linkinfo');
  const kind = textOf(info, 'info_kind');
  return {
    name: textOf(fields, 'ifname') ?? '',
    kind,
    isUp: includes(fields, 'flags', 'UP'),
    isEthernet: textOf(fields, 'link_type') === 'ether',
    mtu: numberOf(fields, 'mtu') ?? 0,
    mac: textOf(fields, 'address') ?? '',
    alias: textOf(fields, 'ifalias'),
    master: textOf(fields, 'master'),
    vxlan: kind === 'vxlan' ? vxlanOf(objectOf(info, 'info_data')) : undefined,
    addresses: listOf(fields, 'addr_info').flatMap(addressOf),
  };
};

const vxlanOf = (data: Fields): VxlanListed => ({
  id: numberOf(data, 'id'),
  port: numberOf(data, 'port'),
  parent: textOf(data, 'link'),
  local: ipOf(data, 'local') ?? ipOf(data, 'local6'),
  hasGbp: data.gbp === true,
  isLearning: data.learning === true,
  hasChecksums: ipOf(data, 'local6') === undefined ? data.udp_csum === true : data.udp_zero_csum6_tx === false,
});

// How the kernel writes that a lifetime has no end.
const FOREVER = 2 ** 32 - 1;

const addressOf = (fields: Fields): AddressListed[] => {
  const ip = ipOf(fields, 'local');
  const prefixLength = numberOf(fields, 'prefixlen');
  if (ip === undefined || prefixLength === undefined) return [];
  return [
    {
      ip,
      prefixLength,
      isLinkLocal: textOf(fields, 'scope') === 'link',
      isSecondary: fields.secondary === true,
      isTentative: fields.tentative === true || fields.dadfailed === true,
      isForever: numberOf(fields, 'valid_life_time') === FOREVER,
      isDeprecated: numberOf(fields, 'preferred_life_time') === 0,
    },
  ];
};

const ALL_MARK_BITS = 0xffff_ffff;
const RULE_FIELDS = new Set(['priority', 'src', 'fwmark', 'fwmask', 'table', 'goto', 'protocol', 'unresolved']);

const ruleOf = (fields: Fields, family: IpFamily): RuleListed => ({
  family,
  priority: numberOf(fields, 'priority') ?? 0,
  mark: markOf(textOf(fields, 'fwmark')),
  mask: markOf(textOf(fields, 'fwmask')) ?? ALL_MARK_BITS,
  table: tableOf(textOf(fields, 'table')),
  goto: numberOf(fields, 'goto'),
  isNarrower: textOf(fields, 'src') !== 'all' || Object.keys(fields).some((name) => !RULE_FIELDS.has(name)),
});

const markOf = (text: string | undefined): number | undefined => {
  const value = Number(text ?? '');
  return text === undefined || !Number.isInteger(value) ? undefined : value;
};

const LOCAL_TABLE = 255;
const MAIN_TABLE = 254;
const TABLES_WITH_NAMES: Readonly<Record<string, number>> = { local: LOCAL_TABLE, main: MAIN_TABLE, default: 253 };

const tableOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const number = TABLES_WITH_NAMES[text] ?? Number(text);
  return Number.isInteger(number) ? number : undefined;
};

const routeOf = (fields: Fields): RouteListed[] => {
  const hops = listOf(fields, 'nexthops');
  const first = hops[0] ?? fields;
  const table = tableOf(textOf(fields, 'table') ?? 'main');
  const destination = textOf(fields, 'dst');
  // The table `local` is the kernel's own, and for every address it has several routes.
  if (table === undefined || table === LOCAL_TABLE || destination === undefined) return [];
  return [
    {
      // Only IPv6 routes have a preference (RFC 4191).
      family: fields.pref === undefined ? 4 : 6,
      table,
      type: textOf(fields, 'type') ?? 'unicast',
      destination,
      via: ipOf(first, 'gateway'),
      device: textOf(first, 'dev'),
      metric: numberOf(fields, 'metric') ?? 0,
      source: ipOf(fields, 'prefsrc'),
      isComplex: hops.length > 0 || fields.via !== undefined || fields.encap !== undefined,
    },
  ];
};

/** True for routes of the table that everybody uses. */
export const isMain = ({ table }: RouteListed): boolean => table === MAIN_TABLE;

const neighbourOf = (fields: Fields): { device: string; ip: Ip; mac: string }[] => {
  const ip = ipOf(fields, 'dst');
  const device = textOf(fields, 'dev');
  const mac = textOf(fields, 'lladdr');
  return ip === undefined || device === undefined || mac === undefined ? [] : [{ device, ip, mac }];
};

const proxyOf = (fields: Fields): ProxyListed[] => {
  const ip = ipOf(fields, 'dst');
  const device = textOf(fields, 'dev');
  return ip === undefined || device === undefined ? [] : [{ device, ip, protocol: markOf(textOf(fields, 'protocol')) }];
};

const forwardingsOf = (ended: ProgramResult): Listing['forwardings'] => {
  // There is no tunnel device yet.
  if (/Cannot find device/.test(ended.stderr)) return [];
  const documents = ended.code === 0 ? parseDocuments(ended.stdout) : undefined;
  if (documents === undefined) throw unreadable('bridge -j', ended);
  return documents.flat().flatMap((fields) => {
    const mac = textOf(fields, 'mac');
    const to = ipOf(fields, 'dst');
    return mac === undefined || to === undefined ? [] : [{ mac, to }];
  });
};
