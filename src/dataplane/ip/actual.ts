/** NetworkActual: what the kernel holds of ours. Made from a Listing, which holds what belongs to others too. */
import { type Ip, parseIp } from '../../core/ip/index.ts';
import type { ForwardingDesired, NeighbourDesired, RuleDesired } from '../../core/node/desired.ts';
import { isOurTable } from '../../core/node/numbers.ts';
import {
  type AddressListed,
  isMain,
  type LinkListed,
  type Listing,
  type ProxyListed,
  type RouteListed,
} from './listing.ts';
import { asOurRule, type DeviceNames, roleOf } from './owned.ts';

export interface NetworkActual {
  /** Our devices. */
  readonly links: readonly LinkActual[];
  /** Devices of others that have a name of ours. */
  readonly squatters: readonly LinkListed[];
  /** Without the link-local ones, which the kernel makes by itself. */
  readonly addresses: readonly AddressActual[];
  /** May hold the same rule twice. */
  readonly rules: readonly RuleDesired[];
  /** Everything in our tables. */
  readonly routes: readonly RouteListed[];
  /** Routes to single addresses on our devices, in the table that everybody uses. */
  readonly ways: readonly WayListed[];
  readonly neighbours: readonly NeighbourDesired[];
  readonly forwardings: readonly ForwardingDesired[];
  /** Of others too: an entry that is there need not be made. */
  readonly proxies: readonly ProxyListed[];
}

export interface LinkActual extends LinkListed {
  readonly role: keyof DeviceNames;
}

export interface WayListed {
  readonly device: string;
  readonly ip: Ip;
}

/** Metrics that the kernel gives a route that names none. */
export const METRIC = { 4: 0, 6: 1024 } as const;

export interface AddressActual extends AddressListed {
  readonly device: string;
  readonly ip: Ip;
}

/** Picks what is ours. */
export const actualOf = (listing: Listing, names: DeviceNames): NetworkActual => {
  const links = listing.links.flatMap((link): LinkActual[] => {
    const role = roleOf(link, listing.links, names);
    return role === undefined ? [] : [{ ...link, role }];
  });
  const devices = new Set(links.map(({ name }) => name));
  return {
    links,
    squatters: listing.links.filter(({ name }) => isNameOfOurs(name, names) && !devices.has(name)),
    addresses: links.flatMap(({ name, addresses }) =>
      addresses.filter(({ isLinkLocal }) => !isLinkLocal).map((address) => ({ ...address, device: name })),
    ),
    rules: listing.rules.map(asOurRule).filter((rule) => rule !== undefined),
    routes: listing.routes.filter(({ table }) => isOurTable(table)),
    ways: listing.routes.filter(isMain).flatMap((route) => wayOf(route, devices)),
    neighbours: listing.neighbours.filter(({ device }) => devices.has(device)),
    forwardings: devices.has(names.tunnel)
      ? listing.forwardings.map((forwarding) => ({ ...forwarding, device: names.tunnel }))
      : [],
    proxies: listing.proxies,
  };
};

/** The kernel itself makes routes to IPv6 addresses of our devices, with another metric. */
const wayOf = (
  { type, destination, via, device, metric, family, isComplex }: RouteListed,
  devices: ReadonlySet<string>,
): readonly WayListed[] => {
  const ip = parseIp(destination);
  if (!ip.ok || type !== 'unicast' || via !== undefined || isComplex || metric !== METRIC[family]) return [];
  return device !== undefined && devices.has(device) ? [{ device, ip: ip.value }] : [];
};

const isNameOfOurs = (name: string, { tunnel, holder }: DeviceNames): boolean => name === tunnel || name === holder;
