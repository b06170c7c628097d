/**
 * The node as Sallyport finds it: the interface that carries the tunnel, and the interfaces on which EIPs can be
 * announced. Pure; the same listing gives the same answer after every restart.
 */
import { finding } from '../../core/cluster/finding.ts';
import { compareIps, type Ip, isIpv4, isIpv6 } from '../../core/ip/index.ts';
import type { HostView, InterfaceView, ParentView } from '../../core/node/input.ts';
import { type AddressListed, isMain, type LinkListed, type Listing, type RouteListed } from './listing.ts';
import { type DeviceNames, roleOf } from './owned.ts';

/** How the interface is chosen that carries the tunnel. */
export type ParentChoice = { readonly kind: 'defaultRoute' } | { readonly kind: 'interface'; readonly name: string };

/** Reads the node out of a listing. */
export const hostOf = (listing: Listing, choice: ParentChoice, names: DeviceNames): HostView => {
  const links = listing.links.filter((link) => roleOf(link, listing.links, names) === undefined);
  return {
    parent: parentOf(links, listing.routes, choice),
    interfaces: links
      .filter(canAnnounce)
      .map(({ name, mac }): InterfaceView => ({ name, mac, networks: networksOf(name, listing.routes) }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    defaults: defaultRoutes(links, listing.routes).flatMap(({ family, device, via }) =>
      device === undefined ? [] : [{ family, interface: device, nextHop: via }],
    ),
  };
};

const parentOf = (
  links: readonly LinkListed[],
  routes: readonly RouteListed[],
  choice: ParentChoice,
): HostView['parent'] => {
  const defaults = defaultRoutes(links, routes);
  const name = choice.kind === 'interface' ? choice.name : defaults[0]?.device;
  if (name === undefined)
    return missingParent('The node has no default route, so no interface was found for the tunnel.');
  const link = links.find((candidate) => candidate.name === name);
  if (link === undefined) return missingParent(`The interface ${name} for the tunnel does not exist.`);
  if (!link.isUp) return missingParent(`The interface ${name} for the tunnel is down.`);
  const ipv4 = addressOf(link, defaults, isIpv4);
  const ipv6 = addressOf(link, defaults, isIpv6);
  if (ipv4 === undefined && ipv6 === undefined) {
    return { finding: finding('ParentAddressMissing', `The interface ${name} for the tunnel has no usable address.`) };
  }
  return { name, mtu: link.mtu, ipv4, ipv6 } satisfies ParentView;
};

const missingParent = (what: string): HostView['parent'] => ({ finding: finding('ParentInterfaceMissing', what) });

/** Default routes of everybody, the best first: IPv4 before IPv6, then by metric, then by name of the device. */
const defaultRoutes = (links: readonly LinkListed[], routes: readonly RouteListed[]): readonly RouteListed[] => {
  const foreign = new Set(links.map(({ name }) => name));
  return routes
    .filter(
      (route) =>
        isMain(route) && route.destination === 'default' && route.type === 'unicast' && foreign.has(route.device ?? ''),
    )
    .toSorted((a, b) => a.family - b.family || a.metric - b.metric || ((a.device ?? '') < (b.device ?? '') ? -1 : 1));
};

/**
 * The address that the default route names as source; else a first one before secondary ones, a network before a single
 * address, which is more likely to wander between nodes, and then the lowest.
 */
const addressOf = <T extends Ip>(
  link: LinkListed,
  defaults: readonly RouteListed[],
  isFamily: (ip: Ip) => ip is T,
): T | undefined => {
  const usable = link.addresses.filter((address) => isFamily(address.ip) && isLasting(address));
  const source = defaults.find(
    (route) => route.device === link.name && route.source !== undefined && isFamily(route.source),
  );
  const [best] = usable.toSorted(
    (a, b) =>
      Number(b.ip === source?.source) - Number(a.ip === source?.source) ||
      Number(a.isSecondary) - Number(b.isSecondary) ||
      Number(isSingle(a)) - Number(isSingle(b)) ||
      compareIps(a.ip, b.ip),
  );
  return best !== undefined && isFamily(best.ip) ? best.ip : undefined;
};

const isLasting = ({ isLinkLocal, isTentative, isDeprecated, ip }: AddressListed): boolean =>
  !isLinkLocal && !isTentative && !isDeprecated && !ip.startsWith('127.') && ip !== '::1';

const isSingle = ({ ip, prefixLength }: AddressListed): boolean => prefixLength === (isIpv4(ip) ? 32 : 128);

// Nobody who asks for an EIP from outside is behind these.
const INNER_KINDS: readonly (string | undefined)[] = [
  'dummy',
  'vxlan',
  'geneve',
  'gretap',
  'ip6gretap',
  'ifb',
  'wireguard',
];

/**
 * True for interfaces that lead to others by Ethernet and have an address of their own there. The node's ends of the
 * interfaces of pods are left out by that: they have none, are ports of a bridge, or, with some CNIs, carry the single
 * address of the pods' router. Real interfaces can have a single address too, but those are not veth pairs.
 */
const canAnnounce = ({ isUp, isEthernet, kind, master, addresses }: LinkListed): boolean => {
  if (!isUp || !isEthernet || master !== undefined || INNER_KINDS.includes(kind)) return false;
  const own = addresses.filter(({ isLinkLocal }) => !isLinkLocal);
  return kind === 'veth' ? own.some((address) => !isSingle(address)) : own.length > 0;
};

/** What is reached on an interface without a router. */
const networksOf = (name: string, routes: readonly RouteListed[]): readonly string[] => [
  ...new Set(
    routes
      .filter(
        (route) =>
          isMain(route) &&
          route.device === name &&
          route.type === 'unicast' &&
          route.via === undefined &&
          !route.isComplex &&
          route.destination.includes('/') &&
          !route.destination.startsWith('fe80:'),
      )
      .map(({ destination }) => destination)
      .toSorted(),
  ),
];
