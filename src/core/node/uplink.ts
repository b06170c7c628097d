/**
 * Uplink: the interfaces and routers that the EIPs of a node need to reach the outside. An EIP needs an interface on which it is
 * announced, or no answer comes back to it, and the interface of the default route of its family, by which its packets leave.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Finding, finding } from '../cluster/finding.ts';
import { ofPair } from '../cluster/view.ts';
import {
  type Cidr,
  contains,
  emptySet,
  familyOf,
  familyOfCidr,
  type IntervalSet,
  type Ip,
  type IpFamily,
  parseCidr,
  parseCidrMasking,
  parseSet,
  prefixLengthOf,
} from '../ip/index.ts';
import { NETWORKS_PER_BEAT } from '../ownership/wire.ts';
import type { Claim, NodeDesired } from './desired.ts';
import { type HostView, parentIn } from './input.ts';
import { remember } from './remember.ts';

/** What is to be watched, and what depends on it. */
export interface UplinkPlace {
  readonly lines: readonly UplinkLine[];
  readonly ways: readonly UplinkWay[];
}

/** An interface, for each family that needs it. */
export interface UplinkLine {
  readonly interface: string;
  readonly families: readonly { readonly family: IpFamily; readonly nextHop: Ip | undefined }[];
}

/** The way of all EIPs in a network. */
export interface UplinkWay {
  readonly network: Cidr;
  /** One of these has to be well; none where that is not asked. */
  readonly announcedOn: readonly string[];
  /** And this one; undefined without a default route. */
  readonly leavesBy: string | undefined;
  /** True when the interface had the network, or the default route, and does not have it any more: EIPs are left that need it. */
  readonly isGone: boolean;
}

/** A family that is lost on an interface. */
export interface UplinkLoss {
  readonly interface: string;
  readonly family: IpFamily;
  /** `silent`: its router; `carrier`: there is none; `route`: it had a network or a default route that EIPs need, and has it no more. */
  readonly cause: 'silent' | 'carrier' | 'route';
  /** The router, if it is silent. */
  readonly nextHop: Ip | undefined;
}

/** What is said about it. */
export const uplinkFinding = (node: string, { interface: name, family, cause, nextHop }: UplinkLoss): Finding => {
  const why = {
    silent: `router ${nextHop} on ${name} is silent`,
    carrier: `${name} has no carrier`,
    route: `${name} no longer has the address or the default route that EIPs need`,
  }[cause];
  return finding('UplinkLost', `Node ${node} does not reach the outside in IPv${family}: ${why}.`);
};

/**
 * Makes a function that finds the place of a node; the same value while it says the same. It remembers ways: an interface that is taken
 * down, or loses its address or route, is found no more, and its EIPs have no way out for just that reason.
 */
export const createUplinkPlaces = (): ((host: HostView, desired: NodeDesired) => UplinkPlace) => {
  const seen = new Map<Cidr, UplinkWay>();
  const place = remember((host: HostView, nodeGroups: ReadonlySet<Ip>, ...claims: readonly (readonly Claim[])[]) => {
    const ways = waysOf(host, nodeGroups, claims.flat());
    const gone = goneWays(seen, ways, familiesIn(host, nodeGroups, claims.flat()), claims.flat());
    for (const way of ways) seen.set(way.network, way);
    for (const network of seen.keys()) {
      if (![...ways, ...gone].some((way) => way.network === network)) seen.delete(network);
    }
    const kept = [...ways, ...gone].slice(0, NETWORKS_PER_BEAT);
    return { lines: linesOf(host, kept), ways: kept };
  }, isDeepStrictEqual);
  return (host, { claims, expected, standbys, nodeGroups }) => place(host, nodeGroups, claims, expected, standbys);
};

const wholeFamilies = ['0.0.0.0/0', '::/0'].flatMap((text) => {
  const parsed = parseCidr(text);
  return parsed.ok ? [parsed.value] : [];
});

const waysOf = (host: HostView, nodeGroups: ReadonlySet<Ip>, claims: readonly Claim[]): readonly UplinkWay[] => {
  const families = familiesIn(host, nodeGroups, claims);
  const leavesBy = (network: Cidr): string | undefined =>
    host.defaults.find(({ family }) => family === familyOfCidr(network))?.interface;
  const whole = wholeFamilies.filter(
    (network) => families.has(familyOfCidr(network)) && leavesBy(network) !== undefined,
  );
  const ways = [...whole.map((network) => [network, []] as const), ...announcedNetworks(host, claims)];
  return ways.map(([network, announcedOn]) => ({ network, announcedOn, leavesBy: leavesBy(network), isGone: false }));
};

/** The ways that were there and are not, though EIPs in them are left that have no other. */
const goneWays = (
  seen: ReadonlyMap<Cidr, UplinkWay>,
  ways: readonly UplinkWay[],
  families: ReadonlySet<IpFamily>,
  claims: readonly Claim[],
): readonly UplinkWay[] => {
  const missing = [...seen.values()].filter(({ network }) => ways.every((way) => way.network !== network));
  if (missing.length === 0) return [];
  const onLink = networkSet(ways.filter((way) => !isWhole(way)));
  return missing
    .filter((way) => {
      if (isWhole(way)) return families.has(familyOfCidr(way.network));
      const lost = networkSet([way]);
      return claims.some(({ ip }) => contains(lost, ip) && !contains(onLink, ip));
    })
    .map((way) => ({ ...way, isGone: true }));
};

const isWhole = ({ network }: UplinkWay): boolean => prefixLengthOf(network) === 0;

const networkSet = (ways: readonly UplinkWay[]): IntervalSet => {
  const set = parseSet(
    ways.map(({ network }) => network),
    parseCidr,
  );
  return set.ok ? set.value : emptySet;
};

/** The families that anything on the node leaves with. A node group leaves with the addresses of the node. */
const familiesIn = (host: HostView, nodeGroups: ReadonlySet<Ip>, claims: readonly Claim[]): ReadonlySet<IpFamily> => {
  const parent = nodeGroups.size === 0 ? undefined : parentIn(host);
  const own = ([4, 6] as const).filter((family) => parent !== undefined && ofPair(parent, family) !== undefined);
  return new Set([...own, ...claims.map(({ ip }) => familyOf(ip))]);
};

/** The networks on the interfaces that announce EIPs of their family, in the order of names, and on which of them each is. */
const announcedNetworks = (host: HostView, claims: readonly Claim[]): ReadonlyMap<Cidr, readonly string[]> => {
  const announced = new Set(
    claims.flatMap(({ ip, interfaces }) => interfaces.map((name) => `${name} ${familyOf(ip)}`)),
  );
  const found = new Map<Cidr, readonly string[]>();
  for (const { name, networks } of host.interfaces) {
    for (const text of networks) {
      const network = parseCidrMasking(text);
      if (!network.ok || !announced.has(`${name} ${familyOfCidr(network.value)}`)) continue;
      found.set(network.value, [...(found.get(network.value) ?? []), name]);
    }
  }
  return found;
};

const linesOf = (host: HostView, ways: readonly UplinkWay[]): readonly UplinkLine[] => {
  const familiesByName = new Map<string, Set<IpFamily>>();
  for (const { network, announcedOn, leavesBy } of ways) {
    for (const name of [...announcedOn, ...(leavesBy === undefined ? [] : [leavesBy])]) {
      const families = familiesByName.get(name);
      if (families === undefined) familiesByName.set(name, new Set([familyOfCidr(network)]));
      else families.add(familyOfCidr(network));
    }
  }
  return [...familiesByName]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, families]) => ({
      interface: name,
      families: [...families].sort().map((family) => {
        const route = host.defaults.find((one) => one.interface === name && one.family === family);
        return { family, nextHop: route?.nextHop };
      }),
    }));
};
