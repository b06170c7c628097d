/**
 * The Ethernet frames by which machines tell and ask who has an address, written and read as bytes. IPv4 does it with
 * ARP (RFC 826, RFC 5227), IPv6 with neighbour discovery (RFC 4861, RFC 4862). Nothing here sends anything.
 */
import { type Ip, type Ipv4, type Ipv6, ipBytes, ipOfBytes, isIpv4 } from '../../core/ip/index.ts';

/** What a frame says: the machine with this MAC address has this address. */
export interface FrameClaim {
  readonly ip: Ip;
  readonly mac: string;
  /** Who sent the frame; another machine than `mac` where somebody speaks for it. */
  readonly sender: string;
}

/** EtherType of the frames of a family. */
export const etherTypes = { 4: 0x0806, 6: 0x86dd } as const;

const BROADCAST = 'ff:ff:ff:ff:ff:ff';
const NO_MAC = '00:00:00:00:00:00';
const NO_IPV4 = Buffer.alloc(4);
const NO_IPV6 = Buffer.alloc(16);
const ALL_NODES = Buffer.from('ff020000000000000000000000000001', 'hex');
const SOLICITED_NODES = Buffer.from('ff0200000000000000000001ff000000', 'hex');
const ETHERNET_LENGTH = 14;

// Ethernet addresses of 6 bytes for IPv4 addresses of 4 bytes.
const ARP_START = '0001080006' + '04';
const ARP_LENGTH = 28;
const ARP_REQUEST = 1;
const ARP_REPLY = 2;

const IPV6_LENGTH = 40;
const ICMPV6 = 58;
// Neighbour discovery counts only from the own segment, where no router has lowered the limit.
const HOP_LIMIT = 255;
const SOLICITATION = 135;
const ADVERTISEMENT = 136;
const OVERRIDE_FLAG = 0x20;
const SOURCE_MAC_OPTION = 1;
const TARGET_MAC_OPTION = 2;
// Type, code, checksum, flags and target; options follow, in units of 8 bytes.
const NDP_LENGTH = 24;
const OPTION_UNIT = 8;

/**
 * Frames that tell everybody on the segment that `mac` has the address. IPv4: gratuitous ARP as request and as reply,
 * because some machines heed only one of the two. IPv6: an unsolicited advertisement that overrides what is known.
 */
export const announcements = (ip: Ip, mac: string): readonly Buffer[] =>
  isIpv4(ip)
    ? [
        arpFrame({ operation: ARP_REQUEST, from: mac, senderIp: ipBytes(ip), targetMac: NO_MAC, targetIp: ip }),
        arpFrame({ operation: ARP_REPLY, from: mac, senderIp: ipBytes(ip), targetMac: mac, targetIp: ip }),
      ]
    : [advertisement(ip, mac)];

/**
 * The frame that asks whether anybody has the address and leaves no trace of it in the answering machine: an ARP probe
 * (RFC 5227, sender 0.0.0.0), or the solicitation of duplicate address detection (RFC 4862, sender ::).
 */
export const probe = (ip: Ip, mac: string): Buffer =>
  isIpv4(ip)
    ? arpFrame({ operation: ARP_REQUEST, from: mac, senderIp: NO_IPV4, targetMac: NO_MAC, targetIp: ip })
    : solicitation(ip, mac);

/**
 * The frame that asks a machine whose address is claimed elsewhere. It is answered to the asker alone: an answer to a probe of
 * IPv6 goes to all nodes, and would turn them to the other machine. IPv6 asks in the name of the link-local address that
 * follows from the MAC address; whether this node has that one does not matter, as the answer is read below IP.
 */
export const question = (ip: Ip, mac: string): Buffer =>
  isIpv4(ip)
    ? probe(ip, mac)
    : ndpFrame({
        type: SOLICITATION,
        flags: 0,
        from: { ip: linkLocalOf(mac), mac },
        to: solicitedNodeOf(ip),
        target: ip,
        option: Buffer.concat([Buffer.from([SOURCE_MAC_OPTION, 1]), macBytes(mac)]),
      });

/**
 * Reads a frame for any claim in it: as `readClaim`, and a solicitation in whose name a machine asks for others, as an ARP request
 * has it.
 */
export const readAnyClaim = (frame: Buffer): FrameClaim | undefined => readClaim(frame) ?? readSolicitor(frame);

/** Reads a frame. Undefined for one that claims no address: another protocol, a question, a probe, a broken frame. */
export const readClaim = (frame: Buffer): FrameClaim | undefined => {
  if (frame.length < ETHERNET_LENGTH) return undefined;
  const etherType = frame.readUInt16BE(12);
  const sender = macAt(frame, 6);
  const payload = frame.subarray(ETHERNET_LENGTH);
  if (etherType === etherTypes[4]) return readArp(payload, sender);
  if (etherType === etherTypes[6]) return readAdvertisement(payload, sender);
  return undefined;
};

interface ArpFields {
  readonly operation: number;
  readonly from: string;
  readonly senderIp: Uint8Array;
  readonly targetMac: string;
  readonly targetIp: Ipv4;
}

const arpFrame = ({ operation, from, senderIp, targetMac, targetIp }: ArpFields): Buffer =>
  Buffer.concat([
    ethernetHeader(BROADCAST, from, etherTypes[4]),
    Buffer.from(ARP_START, 'hex'),
    Buffer.from([0, operation]),
    macBytes(from),
    senderIp,
    macBytes(targetMac),
    ipBytes(targetIp),
  ]);

// The sender is the address itself: it is on this node, if not on this interface, and no other address must be looked up.
const advertisement = (ip: Ipv6, mac: string): Buffer =>
  ndpFrame({
    type: ADVERTISEMENT,
    flags: OVERRIDE_FLAG,
    from: { ip: ipBytes(ip), mac },
    to: ALL_NODES,
    target: ip,
    option: Buffer.concat([Buffer.from([TARGET_MAC_OPTION, 1]), macBytes(mac)]),
  });

const solicitation = (ip: Ipv6, mac: string): Buffer =>
  ndpFrame({
    type: SOLICITATION,
    flags: 0,
    from: { ip: NO_IPV6, mac },
    to: solicitedNodeOf(ip),
    target: ip,
    option: Buffer.alloc(0),
  });

interface NdpFields {
  readonly type: number;
  readonly flags: number;
  readonly from: { readonly ip: Uint8Array; readonly mac: string };
  readonly to: Buffer;
  readonly target: Ipv6;
  readonly option: Buffer;
}

const ndpFrame = ({ type, flags, from, to, target, option }: NdpFields): Buffer => {
  const message = Buffer.concat([Buffer.from([type, 0, 0, 0, flags, 0, 0, 0]), ipBytes(target), option]);
  const addresses = Buffer.concat([from.ip, to]);
  message.writeUInt16BE(checksum(Buffer.concat([addresses, pseudoHeaderEnd(message.length), message])), 2);
  const header = Buffer.from([0x60, 0, 0, 0, 0, message.length, ICMPV6, HOP_LIMIT]);
  return Buffer.concat([ethernetHeader(multicastMac(to), from.mac, etherTypes[6]), header, addresses, message]);
};

const readArp = (packet: Buffer, sender: string): FrameClaim | undefined => {
  if (packet.length < ARP_LENGTH || packet.toString('hex', 0, 6) !== ARP_START) return undefined;
  const sent = packet.subarray(14, 18);
  const ip = ipOfBytes(sent);
  // A probe has the sender 0.0.0.0: it asks and claims nothing.
  return ip === undefined || NO_IPV4.equals(sent) ? undefined : { ip, mac: macAt(packet, 8), sender };
};

const readAdvertisement = (packet: Buffer, sender: string): FrameClaim | undefined => {
  if (packet.length < IPV6_LENGTH + NDP_LENGTH || packet[6] !== ICMPV6 || packet[7] !== HOP_LIMIT) return undefined;
  // The checksum is not judged: between virtual devices it is often left to hardware that is not there.
  const message = packet.subarray(IPV6_LENGTH, IPV6_LENGTH + packet.readUInt16BE(4));
  if (message.length < NDP_LENGTH || message[0] !== ADVERTISEMENT || message[1] !== 0) return undefined;
  const ip = ipOfBytes(message.subarray(8, NDP_LENGTH));
  return ip === undefined
    ? undefined
    : { ip, mac: macIn(message.subarray(NDP_LENGTH), TARGET_MAC_OPTION) ?? sender, sender };
};

const readSolicitor = (frame: Buffer): FrameClaim | undefined => {
  const packet = frame.subarray(ETHERNET_LENGTH);
  if (packet.length < IPV6_LENGTH + NDP_LENGTH || frame.readUInt16BE(12) !== etherTypes[6]) return undefined;
  if (packet[6] !== ICMPV6 || packet[7] !== HOP_LIMIT || packet[IPV6_LENGTH] !== SOLICITATION) return undefined;
  const source = packet.subarray(8, 24);
  const ip = ipOfBytes(source);
  if (ip === undefined || NO_IPV6.equals(source)) return undefined;
  const options = packet.subarray(IPV6_LENGTH + NDP_LENGTH, IPV6_LENGTH + packet.readUInt16BE(4));
  const sender = macAt(frame, 6);
  return { ip, mac: macIn(options, SOURCE_MAC_OPTION) ?? sender, sender };
};

const macIn = (options: Buffer, kind: number): string | undefined => {
  for (let at = 0; at + OPTION_UNIT <= options.length; ) {
    const length = (options[at + 1] ?? 0) * OPTION_UNIT;
    if (length === 0) return undefined;
    if (options[at] === kind) return macAt(options, at + 2);
    at += length;
  }
  return undefined;
};

const ethernetHeader = (to: string, from: string, etherType: number): Buffer =>
  Buffer.concat([macBytes(to), macBytes(from), Buffer.from([etherType >> 8, etherType & 0xff])]);

/** The link-local address that follows from a MAC address (RFC 4291 appendix A). */
const linkLocalOf = (mac: string): Buffer => {
  const [first = 0, ...rest] = macBytes(mac);
  return Buffer.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, first ^ 2, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)]);
};

/** Where questions about an address go (RFC 4291 section 2.7.1). */
const solicitedNodeOf = (ip: Ipv6): Buffer =>
  Buffer.concat([SOLICITED_NODES.subarray(0, 13), ipBytes(ip).subarray(13)]);

/** The MAC address that a multicast address is sent to (RFC 2464 section 7). */
const multicastMac = (ip: Buffer): string => macAt(Buffer.concat([Buffer.from([0x33, 0x33]), ip.subarray(-4)]), 0);

/** What follows the addresses in the pseudo header (RFC 8200 section 8.1). */
const pseudoHeaderEnd = (length: number): Buffer => Buffer.from([0, 0, 0, length, 0, 0, 0, ICMPV6]);

/** The Internet checksum (RFC 1071) of an even number of bytes. */
const checksum = (bytes: Buffer): number => {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
};

const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(':', ''), 'hex');
const macAt = (bytes: Buffer, at: number): string =>
  bytes
    .toString('hex', at, at + 6)
    .match(/../g)
    ?.join(':') ?? '';
