/**
 * Every object that `ip` and `bridge` make for us, as the line that puts it there and the line that drops it. To put means
 * to make, or to make as desired what is there under the same key; both may be said twice.
 */
import { isIpv6 } from '../../core/ip/index.ts';
import type {
  AddressDesired,
  ForwardingDesired,
  NeighbourDesired,
  RouteDesired,
  RuleDesired,
} from '../../core/node/desired.ts';
import type { WayListed } from './actual.ts';
import type { Change } from './change.ts';
import type { ProxyListed, RouteListed } from './listing.ts';
import { PROTOCOL } from './ours.ts';

/** Where the tunnel device sends frames for a MAC address. */
export const putForwarding = (forwarding: ForwardingDesired): Change => forwardingChange('replace', forwarding);
export const dropForwarding = (forwarding: ForwardingDesired): Change => forwardingChange('del', forwarding);

const forwardingChange = (verb: string, { mac, device, to }: ForwardingDesired): Change => ({
  tool: 'bridge',
  line: `fdb ${verb} ${mac} dev ${device} dst ${to}`,
  what: `forwarding of ${mac} to ${to}`,
  reason: 'RouteRefused',
  ip: to,
});

/**
 * An address. IPv6 ones are usable at once, without duplicate detection. An IPv6 EIP has preferred lifetime 0: the node
 * itself could otherwise choose it as a source where the outgoing interface has no address of its own (RFC 6724, section
 * 5, rule 3). It is answered for and translated to like any other.
 */
export const putAddress = (address: AddressDesired, isEip: boolean): Change => {
  const options = isIpv6(address.ip) ? ` nodad${isEip ? ' preferred_lft 0' : ''}` : '';
  return addressChange('replace', address, options);
};
export const dropAddress = (address: AddressDesired): Change => addressChange('del', address, '');

const addressChange = (verb: string, { ip, prefixLength, device }: AddressDesired, options: string): Change => ({
  tool: 'ip',
  line: `addr ${verb} ${ip}/${prefixLength} dev ${device}${options}`,
  what: `address ${ip}/${prefixLength} on ${device}`,
  reason: 'RouteRefused',
  ip,
});

/** A neighbour that never has to be asked for. */
export const putNeighbour = (neighbour: NeighbourDesired): Change =>
  neighbourChange(
    neighbour,
    `neigh replace ${neighbour.ip} lladdr ${neighbour.mac} dev ${neighbour.device} nud permanent`,
  );
export const dropNeighbour = (neighbour: NeighbourDesired): Change =>
  neighbourChange(neighbour, `neigh del ${neighbour.ip} dev ${neighbour.device}`);

const neighbourChange = ({ ip, device }: NeighbourDesired, line: string): Change => ({
  tool: 'ip',
  line,
  what: `neighbour ${ip} on ${device}`,
  reason: 'RouteRefused',
  ip,
});

/** The way to a neighbour, in the table that everybody uses: to its address alone. */
export const putWay = (way: WayListed): Change => wayChange('replace', way);
export const dropWay = (way: WayListed): Change => wayChange('del', way);

const wayChange = (verb: string, { ip, device }: WayListed): Change => ({
  tool: 'ip',
  line: `route ${verb} ${ip} dev ${device}`,
  what: `route to ${ip} on ${device}`,
  reason: 'RouteRefused',
  ip,
});

/** An address that the node answers for on an interface, signed as ours. */
export const putProxy = (proxy: Pick<ProxyListed, 'device' | 'ip'>): Change =>
  proxyChange(proxy, `neigh replace proxy ${proxy.ip} dev ${proxy.device} protocol ${PROTOCOL}`);
export const dropProxy = (proxy: Pick<ProxyListed, 'device' | 'ip'>): Change =>
  proxyChange(proxy, `neigh del proxy ${proxy.ip} dev ${proxy.device}`);

const proxyChange = ({ device, ip }: Pick<ProxyListed, 'device' | 'ip'>, line: string): Change => ({
  tool: 'ip',
  line,
  what: `proxy entry for ${ip} on ${device}`,
  reason: 'RouteRefused',
  ip,
});

/** The default route of a table. `onlink`: the peer is reached whatever addresses and routes the device has otherwise. */
export const putRoute = ({ table, via, device }: RouteDesired): Change => ({
  tool: 'ip',
  line: `route replace default via ${via} dev ${device} onlink table ${table}`,
  what: `route via ${via} in table ${table}`,
  reason: 'RouteRefused',
  ip: via,
});
/** Any route that somebody put into one of our tables. */
export const dropRoute = (route: RouteListed): Change => {
  const { type, destination, via, device, metric, table, isComplex } = route;
  const words = [
    'route del',
    ...(type === 'unicast' ? [] : [type]),
    destination === 'default' && route.family === 6 ? '::/0' : destination,
    ...(isComplex || via === undefined ? [] : [`via ${via}`]),
    ...(isComplex || device === undefined ? [] : [`dev ${device}`]),
    ...(metric === 0 ? [] : [`metric ${metric}`]),
    `table ${table}`,
  ];
  return {
    tool: 'ip',
    line: words.join(' '),
    what: `route to ${destination} in table ${table}`,
    reason: 'RouteRefused',
  };
};

/** A rule. There may be several of the same, and dropping drops one of them. */
export const putRule = (rule: RuleDesired): Change => ruleChange('add', rule);
export const dropRule = (rule: RuleDesired): Change => ruleChange('del', rule);

const ruleChange = (verb: string, rule: RuleDesired): Change => ({
  tool: rule.family === 4 ? 'ip' : 'ip -6',
  line: `rule ${verb} ${ruleText(rule)}`,
  what: `IPv${rule.family} rule ${ruleText(rule)}`,
  reason: 'RouteRefused',
});

/** A rule as `ip rule` takes it, without its family. */
export const ruleText = ({ priority, mark, mask, action }: RuleDesired): string =>
  `pref ${priority} fwmark ${hex(mark)}/${hex(mask)} ${
    action.kind === 'lookup' ? `lookup ${action.table}` : `goto ${action.priority}`
  }`;

const hex = (value: number): string => `0x${value.toString(16)}`;

/** A device. What is on it goes with it. */
export const dropLink = (name: string): Change => ({
  tool: 'ip',
  line: `link del dev ${name}`,
  what: `device ${name}`,
  reason: 'RouteRefused',
});
