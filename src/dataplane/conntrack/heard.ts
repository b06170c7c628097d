/** What the kernel says about connections: changes as they happen, and listings. */
import { eachAttribute, NETFILTER_BYTES, type NetlinkMessage, TYPE_MASK } from '../netlink/message.ts';
import { type AddressBytes, addressIn, type Connection, keyIn, protocols } from './connection.ts';
import { attributes, messages, tcpStates, tuple, WORTHY } from './ctnetlink.ts';

/** What a message says about a connection. */
export interface ConnectionEvent {
  /** `closed`: it is gone, or both sides have said good-bye; nobody needs to carry it on. */
  readonly kind: 'open' | 'closed';
  readonly connection: Connection;
}

/** What a message says about a connection that is worth carrying on; undefined for anything else. */
export const connectionEventIn = (bytes: Buffer, message: NetlinkMessage): ConnectionEvent | undefined => {
  const entry = entryIn(bytes, message);
  if (entry === undefined || (entry.bits & WORTHY) !== WORTHY) return undefined;
  const { connection, isRedirected, isOver } = entry;
  // A connection with another destination than the pod asked for was redirected on this very node, and only it knows how.
  if (isRedirected) return undefined;
  return { kind: message.type === messages.delete || isOver ? 'closed' : 'open', connection };
};

/** An entry of the table as a message has it. */
export interface ConntrackEntry {
  readonly connection: Connection;
  /** Of its status. */
  readonly bits: number;
  readonly isRedirected: boolean;
  /** Both sides have said good-bye. */
  readonly isOver: boolean;
}

/** The TCP or UDP connection that a message is about; undefined for anything else. */
export const entryIn = (bytes: Buffer, { type, start, end }: NetlinkMessage): ConntrackEntry | undefined => {
  if (type !== messages.new && type !== messages.delete) return undefined;
  let original: Tuple | undefined;
  let reply: Tuple | undefined;
  let bits = 0;
  let mark = 0;
  let zone = 0;
  let state: number = tcpStates.established;
  const isWhole = eachAttribute(bytes, start + NETFILTER_BYTES, end, (kind, value, valueEnd) => {
    switch (kind) {
      case attributes.original:
        original = tupleIn(bytes, value, valueEnd);
        break;
      case attributes.reply:
        reply = tupleIn(bytes, value, valueEnd);
        break;
      case attributes.status:
        bits = bytes.readUInt32BE(value);
        break;
      case attributes.protocolInfo:
        state = tcpStateIn(bytes, value, valueEnd) ?? state;
        break;
      case attributes.mark:
        mark = bytes.readUInt32BE(value);
        break;
      case attributes.zone:
        zone = bytes.readUInt16BE(value);
        break;
    }
  });
  if (!isWhole || original === undefined || reply === undefined || zone !== 0) return undefined;
  const key = keyIn(bytesOf(original));
  if (key === undefined) return undefined;
  return {
    connection: { key, eip: reply.destination, eipPort: reply.destinationPort, mark },
    bits,
    isRedirected: original.destination !== reply.source || original.destinationPort !== reply.sourcePort,
    isOver: original.protocol === protocols.tcp && state >= tcpStates.lastAck,
  };
};

interface Tuple {
  readonly protocol: number;
  readonly source: AddressBytes;
  readonly destination: AddressBytes;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/**
 * A direction of a connection. The kernel writes it in one way only: addresses (source, destination), then protocol (number,
 * ports); so places are known and only their types are checked.
 */
const tupleIn = (bytes: Buffer, start: number, end: number): Tuple | undefined => {
  const width = end - start >= 72 ? 16 : 4;
  const addresses = 4 + 2 * (4 + width);
  // Number, source port, destination port: four bytes of attribute header and four of value each.
  if (end - start < addresses + 4 + 3 * 8) return undefined;
  const at = start + addresses + 4;
  if ((bytes.readUInt16LE(start + addresses + 2) & TYPE_MASK) !== tuple.protocol) return undefined;
  const protocol = bytes[at + 4] ?? 0;
  if (protocol !== protocols.tcp && protocol !== protocols.udp) return undefined;
  return {
    protocol,
    source: addressIn(bytes, start + 8, width),
    destination: addressIn(bytes, start + 12 + width, width),
    sourcePort: bytes.readUInt16BE(at + 12),
    destinationPort: bytes.readUInt16BE(at + 20),
  };
};

const bytesOf = ({ protocol, source, destination, sourcePort, destinationPort }: Tuple): Buffer => {
  const bytes = Buffer.allocUnsafe(5 + source.length + destination.length);
  bytes[0] = protocol;
  bytes.writeUInt16BE(sourcePort, 1);
  bytes.writeUInt16BE(destinationPort, 3);
  bytes.write(source, 5, 'latin1');
  bytes.write(destination, 5 + source.length, 'latin1');
  return bytes;
};

/** The state inside protocol info, TCP; undefined when it is not there. */
const tcpStateIn = (bytes: Buffer, start: number, end: number): number | undefined => {
  // TCP is the first attribute of the first, and the state its first.
  const isThere =
    end - start >= 9 && (bytes.readUInt16LE(start + 2) & TYPE_MASK) === 1 && bytes.readUInt16LE(start + 6) === 1;
  return isThere ? bytes[start + 8] : undefined;
};
