/**
 * The lines of lines.ts as the netlink messages that `ip` and `bridge` make of them (iproute2 6.1), for those that come and
 * go with EIPs and peers. A line that is not known here has no message: it is for the program. Pure.
 */
import { ipBytes, parseIp } from '../../core/ip/index.ts';
import { attribute, flags, message } from '../netlink/message.ts';
import type { Tool } from './change.ts';

/** A message without the header's sequence number, which whoever sends it writes. */
export type Message = Buffer;

/** Index of a device by its name; undefined when there is none. */
export type IndexOf = (device: string) => number | undefined;

/** The message of a line; undefined when only the program knows what to do. */
export const messageOf = (tool: Tool, line: string, indexOf: IndexOf): Message | undefined => {
  for (const [pattern, write] of grammar[tool]) {
    const groups = pattern.exec(line)?.groups;
    if (groups !== undefined) return write(groups, indexOf);
  }
  return undefined;
};

/** Named parts of a line; a part that the line does not have is not there. */
type Words = Readonly<Record<string, string | undefined>>;
type Write = (words: Words, indexOf: IndexOf) => Message | undefined;

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

const writeAddress: Write = ({ verb, ip = '', length, device = '', nodad, preferred }, indexOf) => {
  const [bytes, index] = [addressIn(ip), indexOf(device)];
  if (bytes === undefined || index === undefined) return undefined;
  const body = Buffer.alloc(8);
  body[0] = familyOf(bytes);
  body[1] = Number(length);
  body.writeUInt32LE(index, 4);
  const lifetimes = Buffer.alloc(16);
  lifetimes.writeUInt32LE(Number(preferred), 0);
  lifetimes.writeUInt32LE(FOREVER, 4);
  const [type, wanted] = verb === 'del' ? [RTM_DELADDR, DROP] : [RTM_NEWADDR, PUT];
  return message(type, wanted, [
    body,
    attribute(IFA_LOCAL, bytes),
    attribute(IFA_ADDRESS, bytes),
    ...(nodad === undefined ? [] : [attribute(IFA_FLAGS, u32(IFA_F_NODAD))]),
    ...(preferred === undefined ? [] : [attribute(IFA_CACHEINFO, lifetimes)]),
  ]);
};

/** A neighbour, a proxy entry, or where a tunnel device sends frames for a MAC address. */
const writeNeighbour: Write = ({ verb, ip = '', mac, device = '', proxy, forwarding, protocol }, indexOf) => {
  const [bytes, index] = [addressIn(ip), indexOf(device)];
  if (bytes === undefined || index === undefined) return undefined;
  const body = Buffer.alloc(12);
  body[0] = forwarding === undefined ? familyOf(bytes) : AF_BRIDGE;
  body.writeInt32LE(index, 4);
  body.writeUInt16LE(forwarding === undefined ? NUD_PERMANENT : NUD_PERMANENT | NUD_NOARP, 8);
  body[10] = (proxy === undefined ? 0 : NTF_PROXY) | (forwarding === undefined ? 0 : NTF_SELF);
  const [type, wanted] = verb === 'del' ? [RTM_DELNEIGH, DROP] : [RTM_NEWNEIGH, PUT];
  return message(type, wanted, [
    body,
    attribute(NDA_DST, bytes),
    ...(mac === undefined ? [] : [attribute(NDA_LLADDR, Buffer.from(mac.replaceAll(':', ''), 'hex'))]),
    ...(protocol === undefined ? [] : [attribute(NDA_PROTOCOL, Buffer.from([Number(protocol)]))]),
  ]);
};

const writeRoute: Write = ({ verb, via = '', device = '', onlink, metric, table = '' }, indexOf) => {
  const [bytes, index] = [addressIn(via), indexOf(device)];
  if (bytes === undefined || index === undefined) return undefined;
  const isDrop = verb === 'del';
  const body = Buffer.alloc(12);
  body[0] = familyOf(bytes);
  body[5] = isDrop ? 0 : RTPROT_BOOT;
  body[7] = RTN_UNICAST;
  body.writeUInt32LE(onlink === undefined ? 0 : RTNH_F_ONLINK, 8);
  const [type, wanted] = isDrop ? [RTM_DELROUTE, DROP] : [RTM_NEWROUTE, PUT];
  return message(type, wanted, [
    body,
    attribute(RTA_GATEWAY, bytes),
    attribute(RTA_OIF, u32(index)),
    attribute(RTA_TABLE, u32(Number(table))),
    ...(metric === undefined ? [] : [attribute(RTA_PRIORITY, u32(Number(metric)))]),
  ]);
};

const writeRule =
  (family: number): Write =>
  ({ verb, priority, mark, mask, table, goto }) => {
    const body = Buffer.alloc(12);
    body[0] = family;
    body[7] = goto === undefined ? FR_ACT_TO_TBL : FR_ACT_GOTO;
    const [type, wanted] = verb === 'del' ? [RTM_DELRULE, DROP] : [RTM_NEWRULE, ADD];
    return message(type, wanted, [
      body,
      attribute(FRA_PRIORITY, u32(Number(priority))),
      attribute(FRA_FWMARK, u32(Number(mark))),
      attribute(FRA_FWMASK, u32(Number(mask))),
      goto === undefined ? attribute(FRA_TABLE, u32(Number(table))) : attribute(FRA_GOTO, u32(Number(goto))),
    ]);
  };

const rule =
  /^rule (?<verb>add|del) pref (?<priority>\d+) fwmark (?<mark>0x[0-9a-f]+)\/(?<mask>0x[0-9a-f]+) (?:lookup (?<table>\d+)|goto (?<goto>\d+))$/;

const grammar: Readonly<Record<Tool, readonly (readonly [RegExp, Write])[]>> = {
  ip: [
    [
      /^addr (?<verb>replace|del) (?<ip>\S+)\/(?<length>\d+) dev (?<device>\S+)(?<nodad> nodad)?(?: preferred_lft (?<preferred>0))?$/,
      writeAddress,
    ],
    [/^neigh (?<verb>replace) (?<ip>\S+) lladdr (?<mac>\S+) dev (?<device>\S+) nud permanent$/, writeNeighbour],
    [/^neigh (?<verb>del) (?<ip>[^ p]\S*) dev (?<device>\S+)$/, writeNeighbour],
    [
      /^neigh (?<verb>replace|del) (?<proxy>proxy) (?<ip>\S+) dev (?<device>\S+)(?: protocol (?<protocol>\d+))?$/,
      writeNeighbour,
    ],
    [
      /^route (?<verb>replace|del) (?:default|::\/0) via (?<via>\S+) dev (?<device>\S+)(?<onlink> onlink)?(?: metric (?<metric>\d+))? table (?<table>\d+)$/,
      writeRoute,
    ],
    [rule, writeRule(AF_INET)],
  ],
  'ip -6': [[rule, writeRule(AF_INET6)]],
  bridge: [[/^(?<forwarding>fdb) (?<verb>replace|del) (?<mac>\S+) dev (?<device>\S+) dst (?<ip>\S+)$/, writeNeighbour]],
};

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const familyOf = (address: Uint8Array): number => (address.length === 4 ? AF_INET : AF_INET6);

const addressIn = (text: string): Uint8Array | undefined => {
  const parsed = parseIp(text);
  return parsed.ok ? ipBytes(parsed.value) : undefined;
};
