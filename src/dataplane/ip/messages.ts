/**
 * A Change as the netlink message that `ip` and `bridge` make of it (iproute2 6.1), for what comes and goes with EIPs and
 * peers. What has no message here is for the programs. Pure.
 */
import { type Ip, ipBytes } from '../../core/ip/index.ts';
import type { RouteDesired } from '../../core/node/desired.ts';
import { attribute, flags, message } from '../netlink/message.ts';
import type { NetworkChange, Verb } from './change.ts';
import type { RouteListed } from './listing.ts';
import { PROTOCOL } from './owned.ts';

/** A message without the header's sequence number, which whoever sends it writes. */
export type RequestMessage = Buffer;

/** Index of a device by its name; undefined when there is none. */
export type IndexOf = (device: string) => number | undefined;

/** The message of a change; undefined when only the program knows what to do, or when its device is not there. */
export const messageOf = (change: NetworkChange, indexOf: IndexOf): RequestMessage | undefined => {
  switch (change.kind) {
    case 'address':
      return addressMessage(change, indexOf(change.address.device));
    case 'neighbour': {
      const { ip, mac, device } = change.neighbour;
      const parts = change.verb === 'drop' ? [] : [attribute(NDA_LLADDR, macBytes(mac))];
      return neighbourMessage(change.verb, { ip, device, parts }, indexOf);
    }
    case 'proxy': {
      const parts = change.verb === 'drop' ? [] : [attribute(NDA_PROTOCOL, Buffer.from([PROTOCOL]))];
      return neighbourMessage(change.verb, { ...change.proxy, flags: NTF_PROXY, parts }, indexOf);
    }
    case 'forwarding': {
      const { mac, to, device } = change.forwarding;
      const bridge = { family: AF_BRIDGE, flags: NTF_SELF, state: NUD_PERMANENT | NUD_NOARP };
      return neighbourMessage(
        change.verb,
        { ip: to, device, ...bridge, parts: [attribute(NDA_LLADDR, macBytes(mac))] },
        indexOf,
      );
    }
    case 'route':
      return change.verb === 'put' ? putRouteMessage(change.route, indexOf) : dropRouteMessage(change.route, indexOf);
    case 'rule':
      return ruleMessage(change);
    case 'peer-route':
    case 'make-vxlan':
    case 'make-holder':
    case 'set-link':
    case 'drop-link':
      return undefined;
  }
};

// From linux/rtnetlink.h, if_addr.h, neighbour.h, fib_rules.h; alike on x86_64 and arm64.
const DROP = flags.request | flags.ack;
const ADD = DROP | flags.create | flags.exclusive;
const PUT = DROP | flags.create | flags.replace;
const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;
const RTM_NEWROUTE = 24;
const RTM_DELROUTE = 25;
export const RTM_NEWNEIGH = 28;
const RTM_DELNEIGH = 29;
const RTM_NEWRULE = 32;
const RTM_DELRULE = 33;
const AF_INET = 2;
const AF_BRIDGE = 7;
export const AF_INET6 = 10;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFA_CACHEINFO = 6;
const IFA_FLAGS = 8;
const IFA_F_NODAD = 0x02;
const FOREVER = 0xffffffff;
export const NDA_DST = 1;
const NDA_LLADDR = 2;
export const NDA_PROTOCOL = 12;
const NUD_PERMANENT = 0x80;
// As `bridge` says it; by it a monitor tells forwarding entries from neighbours.
const NUD_NOARP = 0x40;
const NTF_SELF = 0x02;
export const NTF_PROXY = 0x08;
const RTA_OIF = 4;
const RTA_GATEWAY = 5;
const RTA_PRIORITY = 6;
const RTA_TABLE = 15;
const RTN_UNICAST = 1;
const RTNH_F_ONLINK = 4;
const RTPROT_BOOT = 3;
const FRA_GOTO = 4;
const FRA_PRIORITY = 6;
const FRA_FWMARK = 10;
const FRA_TABLE = 15;
const FRA_FWMASK = 16;
const FR_ACT_TO_TBL = 1;
const FR_ACT_GOTO = 2;

const addressMessage = (
  { verb, address, isEip }: Extract<NetworkChange, { kind: 'address' }>,
  index: number | undefined,
): RequestMessage | undefined => {
  if (index === undefined) return undefined;
  const bytes = ipBytes(address.ip);
  const body = Buffer.alloc(8);
  body[0] = familyOf(bytes);
  body[1] = address.prefixLength;
  body.writeUInt32LE(index, 4);
  const isPutIpv6 = verb === 'put' && familyOf(bytes) === AF_INET6;
  // Preferred for no time, valid for ever: see textOf.
  const lifetimes = Buffer.concat([u32(0), u32(FOREVER), u32(0), u32(0)]);
  return message(verb === 'drop' ? RTM_DELADDR : RTM_NEWADDR, verb === 'drop' ? DROP : PUT, [
    body,
    attribute(IFA_LOCAL, bytes),
    attribute(IFA_ADDRESS, bytes),
    ...(isPutIpv6 ? [attribute(IFA_FLAGS, u32(IFA_F_NODAD))] : []),
    ...(isPutIpv6 && isEip ? [attribute(IFA_CACHEINFO, lifetimes)] : []),
  ]);
};

/** An entry of the neighbour table; proxy and forwarding entries are some as well. */
interface NeighbourEntry {
  readonly ip: Ip;
  readonly device: string;
  readonly family?: number;
  readonly flags?: number;
  readonly state?: number;
  readonly parts: readonly Buffer[];
}

const neighbourMessage = (verb: Verb, entry: NeighbourEntry, indexOf: IndexOf): RequestMessage | undefined => {
  const index = indexOf(entry.device);
  if (index === undefined) return undefined;
  const bytes = ipBytes(entry.ip);
  const body = Buffer.alloc(12);
  body[0] = entry.family ?? familyOf(bytes);
  body.writeInt32LE(index, 4);
  body.writeUInt16LE(entry.state ?? NUD_PERMANENT, 8);
  body[10] = entry.flags ?? 0;
  const [type, wanted] = verb === 'drop' ? [RTM_DELNEIGH, DROP] : [RTM_NEWNEIGH, PUT];
  return message(type, wanted, [body, attribute(NDA_DST, bytes), ...entry.parts]);
};

const putRouteMessage = ({ table, via, device }: RouteDesired, indexOf: IndexOf): RequestMessage | undefined => {
  const index = indexOf(device);
  if (index === undefined) return undefined;
  const body = routeHeader(via);
  body[5] = RTPROT_BOOT;
  body.writeUInt32LE(RTNH_F_ONLINK, 8);
  return message(RTM_NEWROUTE, PUT, [body, ...routeParts(via, index, table)]);
};

/** Only for a route as we make it; what somebody else put into our table is for the program. */
const dropRouteMessage = (route: RouteListed, indexOf: IndexOf): RequestMessage | undefined => {
  const { type, destination, via, device, metric, table, isComplex } = route;
  if (type !== 'unicast' || destination !== 'default' || isComplex || via === undefined || device === undefined) {
    return undefined;
  }
  const index = indexOf(device);
  if (index === undefined) return undefined;
  const priority = metric === 0 ? [] : [attribute(RTA_PRIORITY, u32(metric))];
  return message(RTM_DELROUTE, DROP, [routeHeader(via), ...routeParts(via, index, table), ...priority]);
};

const routeHeader = (via: Ip): Buffer => {
  const body = Buffer.alloc(12);
  body[0] = familyOf(ipBytes(via));
  body[7] = RTN_UNICAST;
  return body;
};

const routeParts = (via: Ip, index: number, table: number): readonly Buffer[] => [
  attribute(RTA_GATEWAY, ipBytes(via)),
  attribute(RTA_OIF, u32(index)),
  attribute(RTA_TABLE, u32(table)),
];

const ruleMessage = ({ verb, rule }: Extract<NetworkChange, { kind: 'rule' }>): RequestMessage => {
  const { family, priority, mark, mask, action } = rule;
  const body = Buffer.alloc(12);
  body[0] = family === 4 ? AF_INET : AF_INET6;
  body[7] = action.kind === 'goto' ? FR_ACT_GOTO : FR_ACT_TO_TBL;
  return message(verb === 'drop' ? RTM_DELRULE : RTM_NEWRULE, verb === 'drop' ? DROP : ADD, [
    body,
    attribute(FRA_PRIORITY, u32(priority)),
    attribute(FRA_FWMARK, u32(mark)),
    attribute(FRA_FWMASK, u32(mask)),
    action.kind === 'goto' ? attribute(FRA_GOTO, u32(action.priority)) : attribute(FRA_TABLE, u32(action.table)),
  ]);
};

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(':', ''), 'hex');

const familyOf = (address: Uint8Array): number => (address.length === 4 ? AF_INET : AF_INET6);
