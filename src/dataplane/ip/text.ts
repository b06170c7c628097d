/** A Change as a line for `ip` or `bridge` (iproute2 6.1). Pure. */
import { isIpv4, isIpv6 } from '../../core/ip/index.ts';
import type { RuleDesired } from '../../core/node/desired.ts';
import type { LinkSettings, NetworkChange, Verb, VxlanDesired } from './change.ts';
import type { RouteListed } from './listing.ts';
import { PROTOCOL } from './owned.ts';

/** The programs that read lines. `ip -6` is for rules, whose lines do not say which family they are of. */
export const tools = {
  ip: ['ip'],
  'ip -6': ['ip', '-6'],
  bridge: ['bridge'],
} as const;
export type Tool = keyof typeof tools;

/** The program that makes a change. */
export const toolOf = (change: NetworkChange): Tool => {
  if (change.kind === 'forwarding') return 'bridge';
  return change.kind === 'rule' && change.rule.family === 6 ? 'ip -6' : 'ip';
};

/** The line that makes a change. */
export const textOf = (change: NetworkChange): string => {
  switch (change.kind) {
    case 'address': {
      const { ip, prefixLength, device } = change.address;
      return `addr ${verbOf(change)} ${ip}/${prefixLength} dev ${device}${addressOptions(change)}`;
    }
    case 'neighbour': {
      const { ip, mac, device } = change.neighbour;
      return change.verb === 'drop'
        ? `neigh del ${ip} dev ${device}`
        : `neigh replace ${ip} lladdr ${mac} dev ${device} nud permanent`;
    }
    case 'peer-route':
      return `route ${verbOf(change)} ${change.way.ip} dev ${change.way.device}`;
    case 'proxy': {
      const { ip, device } = change.proxy;
      // The protocol marks the entry as ours.
      const options = change.verb === 'drop' ? '' : ` protocol ${PROTOCOL}`;
      return `neigh ${verbOf(change)} proxy ${ip} dev ${device}${options}`;
    }
    case 'forwarding': {
      const { mac, device, to } = change.forwarding;
      return `fdb ${verbOf(change)} ${mac} dev ${device} dst ${to}`;
    }
    case 'rule':
      return `rule ${change.verb === 'drop' ? 'del' : 'add'} ${ruleText(change.rule)}`;
    case 'route': {
      if (change.verb === 'drop') return dropRouteText(change.route);
      const { table, via, device } = change.route;
      // onlink: the peer is reached whatever addresses and routes the device has otherwise.
      return `route replace default via ${via} dev ${device} onlink table ${table}`;
    }
    case 'make-vxlan': {
      const { name, id, parent, local, port } = change.link;
      const options = `local ${local} dstport ${port} nolearning gbp ${checksums(change.link)}`;
      return `link add name ${name} type vxlan id ${id} dev ${parent} ${options}`;
    }
    case 'make-holder':
      return `link add name ${change.name} type ${change.type}`;
    case 'set-link':
      return `link set dev ${change.link.name} ${settingWords(change.settings).join(' ')}`;
    case 'drop-link':
      return `link del dev ${change.name}`;
  }
};

const verbOf = ({ verb }: { readonly verb: Verb }): string => (verb === 'drop' ? 'del' : 'replace');

/**
 * IPv6 addresses are usable at once, without duplicate detection. An IPv6 EIP has preferred lifetime 0: the node itself
 * could otherwise choose it as a source where the outgoing interface has no address of its own (RFC 6724, section 5, rule
 * 3). It is answered for and translated to like any other.
 */
const addressOptions = ({ verb, address, isEip }: Extract<NetworkChange, { kind: 'address' }>): string => {
  if (verb === 'drop' || !isIpv6(address.ip)) return '';
  return ` nodad${isEip ? ' preferred_lft 0' : ''}`;
};

const dropRouteText = (route: RouteListed): string => {
  const { type, destination, via, device, metric, table, isComplex } = route;
  return [
    'route del',
    ...(type === 'unicast' ? [] : [type]),
    destination === 'default' && route.family === 6 ? '::/0' : destination,
    ...(isComplex || via === undefined ? [] : [`via ${via}`]),
    ...(isComplex || device === undefined ? [] : [`dev ${device}`]),
    ...(metric === 0 ? [] : [`metric ${metric}`]),
    `table ${table}`,
  ].join(' ');
};

/** A rule as `ip rule` takes it, without its family. */
export const ruleText = ({ priority, mark, mask, action }: RuleDesired): string =>
  `pref ${priority} fwmark ${hex(mark)}/${hex(mask)} ${
    action.kind === 'lookup' ? `lookup ${action.table}` : `goto ${action.priority}`
  }`;

const hex = (value: number): string => `0x${value.toString(16)}`;

/** Over IPv6, packets without checksums are always taken: nodes need not change their setting at the same time. */
const checksums = ({ local, hasChecksums }: VxlanDesired): string => {
  if (isIpv4(local)) return hasChecksums ? 'udpcsum' : 'noudpcsum';
  return `${hasChecksums ? 'noudp6zerocsumtx' : 'udp6zerocsumtx'} udp6zerocsumrx`;
};

const settingWords = ({ alias, mac, mtu, isUp }: LinkSettings): readonly string[] => [
  ...(alias === undefined ? [] : [`alias ${alias}`]),
  ...(mac === undefined ? [] : [`address ${mac}`]),
  ...(mtu === undefined ? [] : [`mtu ${mtu}`]),
  ...(isUp === undefined ? [] : ['up']),
];
