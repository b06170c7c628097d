/**
 * The difference between what is desired and what the kernel holds, as changes in an order in which each is safe. Devices
 * are in links.ts, because everything else depends on them.
 */
import { familyOf, isIpv6 } from '../../core/ip/index.ts';
import type { AddressDesired, NetworkDesired, RouteDesired, RuleDesired } from '../../core/node/desired.ts';
import { type AddressActual, METRIC, type NetworkActual } from './actual.ts';
import type { NetworkChange } from './change.ts';
import { isUsable } from './links.ts';
import type { RouteListed } from './listing.ts';
import { isOurProxy } from './owned.ts';
import { ruleText } from './text.ts';

/**
 * What is missing or different. Who receives is known before routes lead there, and routes are there before rules lead
 * into their tables. What needs a device that is not there is left out: the device is the problem, and it is told.
 */
export const missing = (desired: NetworkDesired, actual: NetworkActual): readonly NetworkChange[] => {
  const usable = new Set(desired.links.filter((link) => isUsable(link, actual)).map(({ name }) => name));
  const isOnUsable = ({ device }: OnDevice): boolean => usable.has(device);
  const targets = new Map(actual.forwardings.map((forwarding) => [macKey(forwarding), forwarding.to]));
  const macs = new Map(actual.neighbours.map((neighbour) => [deviceKey(neighbour), neighbour.mac]));
  const ways = new Set(actual.ways.map(deviceKey));
  const proxies = new Set(actual.proxies.map(deviceKey));
  const routes = Map.groupBy(actual.routes, ({ table }) => table);
  const rules = new Set(actual.rules.map(ruleKey));
  return [
    ...desired.forwardings
      .filter((entry) => isOnUsable(entry) && targets.get(macKey(entry)) !== entry.to)
      .map((forwarding) => ({ kind: 'forwarding', verb: 'put', forwarding }) as const),
    ...missingAddresses({ ...desired, addresses: desired.addresses.filter(isOnUsable) }, actual),
    ...desired.neighbours
      .filter((entry) => isOnUsable(entry) && macs.get(deviceKey(entry)) !== entry.mac)
      .map((neighbour) => ({ kind: 'neighbour', verb: 'put', neighbour }) as const),
    ...desired.neighbours
      .filter((entry) => isOnUsable(entry) && !ways.has(deviceKey(entry)))
      .map((way) => ({ kind: 'peer-route', verb: 'put', way }) as const),
    ...desired.proxies
      .filter((entry) => !proxies.has(deviceKey(entry)))
      .map((proxy) => ({ kind: 'proxy', verb: 'put', proxy }) as const),
    ...desired.routes
      .filter((route) => isOnUsable(route) && !routes.get(route.table)?.some((found) => isRoute(route, found)))
      .map((route) => ({ kind: 'route', verb: 'put', route }) as const),
    ...desired.rules
      .filter((rule) => !rules.has(ruleKey(rule)))
      .toSorted(byFamily)
      .map((rule) => ({ kind: 'rule', verb: 'put', rule }) as const),
  ];
};

/**
 * What is ours and not desired, and does not go by itself: with its device, or because `missing` puts something in its
 * place. No rule leads into a table that is being emptied, and devices go after what leads to them.
 */
export const surplus = (desired: NetworkDesired, actual: NetworkActual): readonly NetworkChange[] => {
  const wantedLinks = new Set(desired.links.map(({ name }) => name));
  const links = actual.links.filter(({ name }) => !wantedLinks.has(name));
  const going = new Set(links.map(({ name }) => name));
  const stays = ({ device }: { readonly device?: string | undefined }): boolean =>
    device === undefined || !going.has(device);
  const macs = new Set(desired.forwardings.map(macKey));
  const neighbours = new Set(desired.neighbours.map(deviceKey));
  const proxies = new Set(desired.proxies.map(deviceKey));
  // A rule that is there twice does no harm while it is desired, and to drop one of the two could drop both.
  const rules = new Set(desired.rules.map(ruleKey));
  return [
    ...actual.rules
      .filter((rule) => !rules.has(ruleKey(rule)))
      .toSorted(byFamily)
      .toReversed()
      .map((rule) => ({ kind: 'rule', verb: 'drop', rule }) as const),
    ...surplusRoutes(desired, actual)
      .filter(stays)
      .map((route) => ({ kind: 'route', verb: 'drop', route }) as const),
    ...actual.ways
      .filter((entry) => stays(entry) && !neighbours.has(deviceKey(entry)))
      .map((way) => ({ kind: 'peer-route', verb: 'drop', way }) as const),
    ...surplusAddresses(desired, actual).filter(stays).map(dropAddress),
    ...actual.neighbours
      .filter((entry) => stays(entry) && !neighbours.has(deviceKey(entry)))
      .map((neighbour) => ({ kind: 'neighbour', verb: 'drop', neighbour }) as const),
    ...actual.proxies
      .filter((entry) => isOurProxy(entry) && !proxies.has(deviceKey(entry)))
      .map((proxy) => ({ kind: 'proxy', verb: 'drop', proxy }) as const),
    ...links.map(({ name }) => ({ kind: 'drop-link', name }) as const),
    ...actual.forwardings
      .filter((entry) => stays(entry) && !macs.has(macKey(entry)))
      .map((forwarding) => ({ kind: 'forwarding', verb: 'drop', forwarding }) as const),
  ];
};

interface OnDevice {
  readonly device: string;
}

const deviceKey = ({ device, ip }: OnDevice & { readonly ip: string }): string => `${device} ${ip}`;
const macKey = ({ device, mac }: OnDevice & { readonly mac: string }): string => `${device} ${mac}`;
const addressKey = ({ device, ip, prefixLength }: AddressDesired): string => `${device} ${ip}/${prefixLength}`;
const ruleKey = (rule: RuleDesired): string => `${rule.family} ${ruleText(rule)}`;
// Rules of the two families are for two programs: together they are fewer starts.
const byFamily = (a: RuleDesired, b: RuleDesired): number => a.family - b.family;

const isEip = ({ device }: OnDevice, { links }: NetworkDesired): boolean =>
  links.some(({ kind, name }) => kind === 'holder' && name === device);

/** Addresses that are to be put, and those that must go first. An IPv6 address is on a device once, with one length. */
const addressPlan = (
  desired: NetworkDesired,
  actual: NetworkActual,
): { readonly put: readonly AddressDesired[]; readonly dropFirst: ReadonlySet<AddressActual> } => {
  const held = new Map(actual.addresses.map((address) => [addressKey(address), address]));
  const ofIpv6 = Map.groupBy(
    actual.addresses.filter(({ ip }) => isIpv6(ip)),
    deviceKey,
  );
  const dropFirst = new Set<AddressActual>();
  const put = desired.addresses.filter((address) => {
    const found = held.get(addressKey(address));
    if (found !== undefined && isAsDesired(found, isEip(address, desired))) return false;
    for (const other of ofIpv6.get(deviceKey(address)) ?? []) dropFirst.add(other);
    if (found !== undefined) dropFirst.add(found);
    return true;
  });
  return { put, dropFirst };
};

const dropAddress = (address: AddressDesired): NetworkChange => ({
  kind: 'address',
  verb: 'drop',
  address,
  isEip: false,
});

const missingAddresses = (desired: NetworkDesired, actual: NetworkActual): readonly NetworkChange[] => {
  const { put, dropFirst } = addressPlan(desired, actual);
  return [
    ...[...dropFirst].map(dropAddress),
    ...put.map((address) => ({ kind: 'address', verb: 'put', address, isEip: isEip(address, desired) }) as const),
  ];
};

const surplusAddresses = (desired: NetworkDesired, actual: NetworkActual): readonly AddressActual[] => {
  const wanted = new Set(desired.addresses.map(addressKey));
  const { dropFirst } = addressPlan(desired, actual);
  return actual.addresses.filter((found) => !wanted.has(addressKey(found)) && !dropFirst.has(found));
};

const isAsDesired = (found: AddressActual, isOfEip: boolean): boolean =>
  found.isForever && !found.isTentative && found.isDeprecated === (isOfEip && isIpv6(found.ip));

/** True when putting the wanted route replaces the one found: the kernel tells them apart by these. */
const isInPlaceOf = (wanted: RouteDesired, found: RouteListed): boolean =>
  found.family === familyOf(wanted.via) && found.destination === 'default' && found.metric === METRIC[found.family];

const isRoute = (wanted: RouteDesired, found: RouteListed): boolean =>
  isInPlaceOf(wanted, found) &&
  found.type === 'unicast' &&
  found.via === wanted.via &&
  found.device === wanted.device &&
  !found.isComplex;

const surplusRoutes = (desired: NetworkDesired, actual: NetworkActual): readonly RouteListed[] => {
  const routes = Map.groupBy(desired.routes, ({ table }) => table);
  const held = Map.groupBy(actual.routes, ({ table }) => table);
  return actual.routes.filter((found) => {
    const wanted = routes.get(found.table)?.find((route) => isInPlaceOf(route, found));
    if (wanted === undefined) return true;
    // Beside the wanted one it is too many; in its place it is replaced by it.
    return !isRoute(wanted, found) && held.get(found.table)?.some((other) => isRoute(wanted, other)) === true;
  });
};
