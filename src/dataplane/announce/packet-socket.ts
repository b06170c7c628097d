/**
 * A packet socket: sends and hears the Ethernet frames of one family on one interface. Node has no raw sockets, so the
 * calls go through koffi to the C library that Node itself has loaded. No program is started and no thread waits:
 * reading never blocks, and whoever has a socket open asks it from time to time.
 */
import { getSystemErrorMessage } from 'node:util';
import type { IpFamily } from '../../core/ip/index.ts';
import { etherTypes } from './frames.ts';

/** An open socket. */
export interface PacketSocket {
  /** MAC address of the interface. */
  readonly mac: string;
  /** Sends a frame. Undefined when the kernel took it, else why not. */
  send(frame: Buffer): Refusal | undefined;
  /** The frames that have come in since the last call. None from an interface that is down or gone. */
  receive(): readonly Buffer[];
  /** May be called twice. */
  close(): void;
}

/** Why the kernel would not. */
export interface Refusal {
  /** A few words, such as `no such device`. */
  readonly why: string;
  /** `forbidden`: the process lacks the capability NET_RAW. `busy`: the queue is full; the socket can be used on. */
  readonly kind: 'forbidden' | 'busy' | 'unusable';
}

/** Opens a socket on an interface. */
export type OpenPacketSocket = (interfaceName: string, family: IpFamily) => PacketSocket | Refusal;

/** True if there is no socket. */
export const isRefusal = (opened: PacketSocket | Refusal): opened is Refusal => 'why' in opened;

// From socket(7), packet(7), netdevice(7) and the headers of Linux; alike on x86_64 and arm64.
const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SIOCGIFHWADDR = 0x8927;
const SIOCGIFINDEX = 0x8933;
const ARPHRD_ETHER = 1;
const EPERM = 1;
const EAGAIN = 11;
const ENOBUFS = 105;

const NAME_BYTES = 16;
// The kernel's struct ifreq: the name, then what was asked for.
const REQUEST_BYTES = 40;

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
const NDP_FILTER: readonly (readonly [code: number, ifTrue: number, ifFalse: number, operand: number])[] = [
  [0x30, 0, 0, 20],
  [0x15, 0, 4, 58],
  [0x30, 0, 0, 54],
  [0x15, 1, 0, 135],
  [0x15, 0, 1, 136],
  [0x06, 0, 0, FRAME_BYTES],
  [0x06, 0, 0, 0],
];

const FILTER_HEAD_BYTES = 16;

/** Loads what opening takes: a native addon, about 10 ms and 3 MB. Sockets belong to the network namespace of the caller. */
export const loadPacketSockets = async (): Promise<OpenPacketSocket> => {
  // Imported here and not above, so that the other commands of the program start without the addon.
  const { default: koffi } = await import('koffi');
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const ioctl = library.func('int ioctl(int socket, unsigned long request, void *data)');
  const setOption = library.func('int setsockopt(int socket, int level, int name, void *value, uint32_t length)');
  const bind = library.func('int bind(int socket, void *address, uint32_t length)');
  const send = library.func('intptr_t send(int socket, void *frame, size_t length, int flags)');
  const receive = library.func('intptr_t recv(int socket, void *frame, size_t length, int flags)');
  const close = library.func('int close(int socket)');

  const lastRefusal = (): Refusal => {
    const errno = koffi.errno();
    const kind = errno === EPERM ? 'forbidden' : errno === EAGAIN || errno === ENOBUFS ? 'busy' : 'unusable';
    return { why: getSystemErrorMessage(-errno), kind };
  };

  /** Ties a fresh socket to its interface; the MAC address of that interface. */
  const tie = (descriptor: number, interfaceName: string, family: IpFamily): string | Refusal => {
    const request = Buffer.alloc(REQUEST_BYTES);
    if (request.write(interfaceName) >= NAME_BYTES) return { why: 'no such device', kind: 'unusable' };
    if (ioctl(descriptor, SIOCGIFHWADDR, request) < 0) return lastRefusal();
    if (request.readUInt16LE(NAME_BYTES) !== ARPHRD_ETHER) return { why: 'not an Ethernet device', kind: 'unusable' };
    const mac = request.toString('hex', NAME_BYTES + 2, NAME_BYTES + 8).replace(/..(?!$)/g, '$&:');
    if (ioctl(descriptor, SIOCGIFINDEX, request) < 0) return lastRefusal();
    const index = request.readInt32LE(NAME_BYTES);

    const size = Buffer.alloc(4);
    size.writeUInt32LE(BUFFER_BYTES);
    // Without NET_ADMIN the kernel refuses; then the default size has to do.
    setOption(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, size, size.length);
    setOption(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length);
    if (family === 6) {
      const program = filterProgram(koffi.address);
      if (setOption(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, program, FILTER_HEAD_BYTES) < 0) return lastRefusal();
    }

    // The kernel's struct sockaddr_ll; its protocol is in network order.
    const address = Buffer.alloc(20);
    address.writeUInt16LE(AF_PACKET, 0);
    address.writeUInt16BE(etherTypes[family], 2);
    address.writeInt32LE(index, 4);
    return bind(descriptor, address, address.length) < 0 ? lastRefusal() : mac;
  };

  return (interfaceName, family) => {
    // Protocol 0: until it is bound the socket hears nothing, so no frame of another interface gets in.
    let descriptor: number = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return lastRefusal();
    const mac = tie(descriptor, interfaceName, family);
    if (typeof mac !== 'string') {
      close(descriptor);
      return mac;
    }
    const room = Buffer.alloc(FRAME_BYTES);
    return {
      mac,
      send: (frame) => (send(descriptor, frame, frame.length, 0) < 0 ? lastRefusal() : undefined),
      receive: () => {
        const frames: Buffer[] = [];
        while (frames.length < FRAMES_AT_ONCE) {
          const length: number = receive(descriptor, room, room.length, 0);
          if (length < 0) break;
          frames.push(Buffer.from(room.subarray(0, length)));
        }
        return frames;
      },
      close: () => {
        if (descriptor < 0) return;
        close(descriptor);
        // The number may soon belong to another file of the process; -1 never does.
        descriptor = -1;
      },
    };
  };
};

/** The kernel's struct sock_fprog and, behind it, the instructions it points to: one buffer, so that both live as long. */
const filterProgram = (addressOf: (bytes: Buffer) => bigint): Buffer => {
  const bytes = Buffer.alloc(FILTER_HEAD_BYTES + NDP_FILTER.length * 8);
  bytes.writeUInt16LE(NDP_FILTER.length, 0);
  bytes.writeBigUInt64LE(addressOf(bytes) + BigInt(FILTER_HEAD_BYTES), 8);
  for (const [index, [code, ifTrue, ifFalse, operand]] of NDP_FILTER.entries()) {
    const at = FILTER_HEAD_BYTES + index * 8;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(operand, at + 4);
  }
  return bytes;
};
