/**
 * A packet socket: sends and hears the Ethernet frames of one family on one interface. No thread waits: reading never
 * blocks, and whoever has a socket open asks it from time to time.
 */
import type { Ip, IpFamily } from '../../core/ip/index.ts';
import { indexOfInterface, macOfInterface } from '../interface.ts';
import {
  attachFilter,
  EAGAIN,
  ENOBUFS,
  EPERM,
  errorText,
  type FilterStep,
  intBytes,
  loadLibc,
  SO_RCVBUFFORCE,
  SO_SNDBUFFORCE,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
} from '../libc.ts';
import { claimFilter } from './claim-filter.ts';
import { etherTypes } from './frames.ts';

/** An open socket. */
export interface PacketSocket {
  /** MAC address of the interface. */
  readonly mac: string;
  /** Sends a frame. Undefined when the kernel took it, else why not. */
  send(frame: Buffer): SocketRefusal | undefined;
  /** The frames that have come in since the last call. None from an interface that is down or gone. */
  receive(): readonly Buffer[];
  /**
   * Lets in only frames that may claim one of these addresses of the family of the socket, from now on. Undefined when the kernel
   * took it, else why not.
   */
  heed(ips: readonly Ip[]): SocketRefusal | undefined;
  /** May be called twice. */
  close(): void;
}

/** Why the kernel would not. */
export interface SocketRefusal {
  /** A few words, such as `no such device`. */
  readonly why: string;
  /** `forbidden`: the process lacks the capability NET_RAW. `busy`: the queue is full; the socket can be used on. */
  readonly kind: 'forbidden' | 'busy' | 'unusable';
}

/** Opens a socket on an interface. */
export type OpenPacketSocket = (interfaceName: string, family: IpFamily) => PacketSocket | SocketRefusal;

/** True if there is no socket. */
export const isRefusal = (opened: PacketSocket | SocketRefusal): opened is SocketRefusal => 'why' in opened;

// From packet(7) and the headers of Linux; alike on x86_64 and arm64.
export const AF_PACKET = 17;

// Room for the announcements of some thousand EIPs at once, and for as many answers.
const BUFFER_BYTES = 4 * 1024 * 1024;
// More than any frame that readClaim reads; the rest of a longer one is cut off.
const FRAME_BYTES = 256;
// One call of receive takes no more, so that a flood of frames cannot hold up the process.
const FRAMES_AT_ONCE = 4096;

/**
 * What an IPv6 socket lets in: neighbour solicitations and advertisements. The kernel runs it before it keeps a frame,
 * so that the traffic of the node passes by. Classic BPF: load the next header, compare with ICMPv6; load the type,
 * compare with 135 and 136; take the frame, or nothing of it.
 */
const NDP_FILTER: readonly FilterStep[] = [
  [0x30, 0, 0, 20],
  [0x15, 0, 4, 58],
  [0x30, 0, 0, 54],
  [0x15, 1, 0, 135],
  [0x15, 0, 1, 136],
  [0x06, 0, 0, FRAME_BYTES],
  [0x06, 0, 0, 0],
];

/** Where a packet socket is bound to: the kernel's struct sockaddr_ll; its protocol is in network order. */
export const packetAddress = (index: number, protocol: number): Buffer => {
  const address = Buffer.alloc(20);
  address.writeUInt16LE(AF_PACKET, 0);
  address.writeUInt16BE(protocol, 2);
  address.writeInt32LE(index, 4);
  return address;
};

/** Loads what opening takes. Sockets belong to the network namespace of the caller. */
export const loadPacketSockets = async (): Promise<OpenPacketSocket> => {
  const libc = await loadLibc();

  const lastRefusal = (): SocketRefusal => {
    const errno = libc.errno();
    const kind = errno === EPERM ? 'forbidden' : errno === EAGAIN || errno === ENOBUFS ? 'busy' : 'unusable';
    return { why: errorText(errno), kind };
  };

  /** Ties a fresh socket to its interface; the MAC address of that interface. */
  const tie = (descriptor: number, interfaceName: string, family: IpFamily): string | SocketRefusal => {
    const mac = macOfInterface(libc, descriptor, interfaceName);
    if (mac === undefined) return lastRefusal();
    if (mac === '') return { why: 'not an Ethernet device', kind: 'unusable' };
    const index = indexOfInterface(libc, descriptor, interfaceName);
    if (index === undefined) return lastRefusal();

    const size = intBytes(BUFFER_BYTES);
    // Without NET_ADMIN the kernel refuses; then the default size has to do.
    libc.setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, size, size.length);
    libc.setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length);
    if (family === 6 && attachFilter(libc, descriptor, NDP_FILTER) < 0) return lastRefusal();

    const address = packetAddress(index, etherTypes[family]);
    return libc.bind(descriptor, address, address.length) < 0 ? lastRefusal() : mac;
  };

  return (interfaceName, family) => {
    // Protocol 0: until it is bound the socket hears nothing, so no frame of another interface gets in.
    let descriptor = libc.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return lastRefusal();
    const mac = tie(descriptor, interfaceName, family);
    if (typeof mac !== 'string') {
      libc.close(descriptor);
      return mac;
    }
    const room = Buffer.alloc(FRAME_BYTES);
    return {
      mac,
      send: (frame) => (libc.send(descriptor, frame, frame.length, 0) < 0 ? lastRefusal() : undefined),
      receive: () => {
        const frames: Buffer[] = [];
        while (frames.length < FRAMES_AT_ONCE) {
          const length = libc.recv(descriptor, room, room.length, 0);
          if (length < 0) break;
          frames.push(Buffer.from(room.subarray(0, length)));
        }
        return frames;
      },
      heed: (ips) =>
        attachFilter(libc, descriptor, claimFilter(family, ips, FRAME_BYTES)) < 0 ? lastRefusal() : undefined,
      close: () => {
        if (descriptor < 0) return;
        libc.closeAside(descriptor);
        // The number may soon belong to another file of the process; -1 never does.
        descriptor = -1;
      },
    };
  };
};
