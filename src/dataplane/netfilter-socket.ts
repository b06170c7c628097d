/** A netlink socket to the netfilter part of the kernel: nftables and the connection table. Reading never blocks. */
import {
  attachFilter,
  EAGAIN,
  type FilterStep,
  intBytes,
  type Libc,
  SO_RCVBUFFORCE,
  SO_SNDBUFFORCE,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
} from './libc.ts';

/** An open socket. */
export interface NetfilterSocket {
  /** What has come in, next in order; undefined when nothing waits, `lost` when the kernel had to throw some away. */
  receive(): Buffer | 'lost' | undefined;
  /** Sends requests, one behind the other. Zero when the kernel took them, else the number of the error. */
  send(requests: Buffer): number;
  /** May be called twice. */
  close(): void;
}

export interface NetfilterOptions {
  /** The groups whose messages are to come, by number. */
  readonly groups: readonly number[];
  /** Room for messages that wait; memory is used only while they do. */
  readonly bufferBytes: number;
  /** The most that is sent at once, if it may be more than the 200 KB that are usual. */
  readonly sendBytes?: number;
  /** What the kernel tells of the groups; everything without it. */
  readonly filter?: readonly FilterStep[];
}

// From netlink(7) and the headers of Linux; alike on x86_64 and arm64.
export const AF_NETLINK = 16;
export const NETLINK_NETFILTER = 12;
// The kernel packs messages into pieces of at most a page or 8 KB, of a dump 32 KB; a single larger message would be cut.
const MESSAGE_BYTES = 64 * 1024;

/** Opens a socket, or returns the number of the error. */
export const openNetfilterSocket = (libc: Libc, options: NetfilterOptions): NetfilterSocket | number => {
  let descriptor = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (descriptor < 0) return libc.errno();
  const refuse = (): number => {
    const errno = libc.errno();
    libc.close(descriptor);
    return errno;
  };
  // Without NET_ADMIN the kernel refuses; then the default size has to do.
  libc.setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, intBytes(options.bufferBytes), 4);
  if (options.sendBytes !== undefined) {
    libc.setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, intBytes(options.sendBytes), 4);
  }
  if (options.filter !== undefined && attachFilter(libc, descriptor, options.filter) < 0) return refuse();
  // The kernel's struct sockaddr_nl: family, padding, port (0: the kernel chooses), groups.
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK, 0);
  address.writeUInt32LE(
    options.groups.reduce((bits, group) => bits | (1 << (group - 1)), 0),
    8,
  );
  if (libc.bind(descriptor, address, address.length) < 0) return refuse();
  const room = Buffer.alloc(MESSAGE_BYTES);
  return {
    receive: () => {
      const length = libc.recv(descriptor, room, room.length, 0);
      if (length >= 0) return Buffer.from(room.subarray(0, length));
      // ENOBUFS, above all: messages were thrown away.
      return libc.errno() === EAGAIN ? undefined : 'lost';
    },
    send: (requests) => (libc.send(descriptor, requests, requests.length, 0) < 0 ? libc.errno() : 0),
    close: () => {
      if (descriptor < 0) return;
      // The kernel lets whoever closes such a socket wait until all that nftables has deleted is freed.
      libc.closeAside(descriptor);
      // The number may soon belong to another file of the process; -1 never does.
      descriptor = -1;
    },
  };
};
