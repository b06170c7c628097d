/**
 * Connection is an entry of the connection table that leaves with an EIP, as far as another node needs it to carry the
 * connection on. A gateway node has many of them, and addresses are only passed on, never reckoned with: so they stay the bytes
 * that the kernel has, as a string with a character for each byte. Such strings are small, and compare and serve as keys
 * of maps as they are.
 */
import { type Ip, ipBytes, isIpv4 } from '../../core/ip/index.ts';

declare const brand: unique symbol;

/** An address as 4 or 16 bytes. */
export type AddressBytes = string & { readonly [brand]: 'AddressBytes' };
/**
 * What a connection is called: protocol (1 byte), source port, destination port (2 each), source, destination (4 or 16
 * each), as the pod sees them. No two connections of a node have the same.
 */
export type ConnectionKey = string & { readonly [brand]: 'ConnectionKey' };

export interface Connection {
  readonly key: ConnectionKey;
  /** What the outside sees as its source. */
  readonly eip: AddressBytes;
  readonly eipPort: number;
  /** Says where replies go, or under which slot the connection was made (src/core/node/numbers.ts). */
  readonly mark: number;
}

/** Numbers of the protocols that have connections which can be carried on. */
export const protocols = { tcp: 6, udp: 17 } as const;
export type Protocol = keyof typeof protocols;

/** A connection in words. */
export interface ConnectionParts {
  readonly protocol: Protocol;
  readonly source: Ip;
  readonly sourcePort: number;
  readonly destination: Ip;
  readonly destinationPort: number;
}

const HEAD_BYTES = 5;
const WIDTHS: Readonly<Record<string, 4 | 16>> = { [HEAD_BYTES + 2 * 4]: 4, [HEAD_BYTES + 2 * 16]: 16 };

/** The bytes of an address. */
export const addressBytes = (ip: Ip): AddressBytes => addressIn(Buffer.from(ipBytes(ip)), 0, isIpv4(ip) ? 4 : 16);

/** The address at a place in bytes. */
export const addressIn = (bytes: Buffer, start: number, width: 4 | 16): AddressBytes =>
  // One of the two places that make the brand; whoever calls knows the width.
  bytes.toString('latin1', start, start + width) as AddressBytes;

/** The name of a connection. */
export const keyOf = (parts: ConnectionParts): ConnectionKey => {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = protocols[parts.protocol];
  head.writeUInt16BE(parts.sourcePort, 1);
  head.writeUInt16BE(parts.destinationPort, 3);
  const text = head.toString('latin1') + addressBytes(parts.source) + addressBytes(parts.destination);
  return text as ConnectionKey;
};

/** A key out of bytes from elsewhere; undefined if they cannot be one. */
export const keyIn = (bytes: Buffer): ConnectionKey | undefined => {
  const isKnown = bytes[0] === protocols.tcp || bytes[0] === protocols.udp;
  return isKnown && WIDTHS[bytes.length] !== undefined ? (bytes.toString('latin1') as ConnectionKey) : undefined;
};

/** How many bytes each address of a connection has. */
export const widthOf = (key: ConnectionKey): 4 | 16 => WIDTHS[key.length] ?? 16;

/** The protocol number of a connection. */
export const protocolOf = (key: ConnectionKey): number => key.charCodeAt(0);

/** Two connections are the same and are translated alike. */
export const isSameConnection = (a: Connection, b: Connection): boolean =>
  a.key === b.key && a.eip === b.eip && a.eipPort === b.eipPort && a.mark === b.mark;
