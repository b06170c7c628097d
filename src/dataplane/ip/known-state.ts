/**
 * What the kernel holds after a value was applied whole, without asking it. Reading costs three programs, and an EIP that
 * comes or goes should not wait for them. Whoever hears that somebody else has changed something says so, and then the
 * kernel is read.
 */
import { familyOf, isIpv6 } from '../../core/ip/index.ts';
import type { NetworkDesired } from '../../core/node/desired.ts';
import { METRIC, type NetworkActual } from './actual.ts';
import { isOurProxy, PROTOCOL } from './owned.ts';

/** The network after `desired` was grown and trimmed with nothing refused. `read` is what was read before that. */
export const knownStateOf = (desired: NetworkDesired, read: NetworkActual): NetworkActual => {
  const names = new Set(desired.links.map(({ name }) => name));
  const holders = new Set(desired.links.filter(({ kind }) => kind === 'holder').map(({ name }) => name));
  return {
    links: read.links.filter(({ name }) => names.has(name)),
    squatters: read.squatters,
    addresses: desired.addresses.map((address) => ({
      ...address,
      isLinkLocal: false,
      isSecondary: false,
      isTentative: false,
      isForever: true,
      isDeprecated: holders.has(address.device) && isIpv6(address.ip),
    })),
    rules: desired.rules,
    routes: desired.routes.map(({ table, via, device }) => ({
      family: familyOf(via),
      table,
      type: 'unicast',
      destination: 'default',
      via,
      device,
      metric: METRIC[familyOf(via)],
      source: undefined,
      isComplex: false,
    })),
    ways: desired.neighbours.map(({ device, ip }) => ({ device, ip })),
    neighbours: desired.neighbours,
    forwardings: desired.forwardings,
    proxies: [
      ...read.proxies.filter((entry) => !isOurProxy(entry)),
      ...desired.proxies.map((entry) => ({ ...entry, protocol: PROTOCOL })),
    ],
  };
};
