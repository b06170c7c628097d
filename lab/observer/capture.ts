/** A raw socket that hears all frames that come in on an interface, with the time at which the kernel took each. */
import { getSystemErrorMessage } from 'node:util';
import koffi from 'koffi';
import { LabFailure } from '../host/failure.ts';

export interface Capture {
  /** Calls with each frame since the last call; the frame is only valid during the call. */
  drain(take: (frame: Buffer, atMs: number) => void): void;
  /** Frames that the kernel had to throw away since the last call, because nobody drained. */
  lost(): number;
  close(): void;
}

// From socket(7), packet(7), netdevice(7) and the headers of Linux.
const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const ETH_P_ALL = 3;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_RCVBUFFORCE = 33;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;
const SIOCGIFINDEX = 0x8933;
const SIOCGSTAMPNS = 0x8907;
const frameBytes = 128;
const bufferBytes = 32 * 1024 * 1024;

/** What goes out is of no interest: load the direction (an extension of BPF, see filter.txt of Linux), compare with outgoing. */
const incomingOnly: readonly (readonly [code: number, ifTrue: number, ifFalse: number, operand: number])[] = [
  [0x28, 0, 0, 0xfffff004],
  [0x15, 1, 0, 4],
  [0x06, 0, 0, frameBytes],
  [0x06, 0, 0, 0],
];

/** Opens it in the namespace that the process is in at that moment. */
export function openCapture(interfaceName: string): Capture {
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const ioctl = library.func('int ioctl(int socket, unsigned long request, void *data)');
  const setOption = library.func('int setsockopt(int socket, int level, int name, void *value, uint32_t length)');
  const getOption = library.func('int getsockopt(int socket, int level, int name, void *value, void *length)');
  const bind = library.func('int bind(int socket, void *address, uint32_t length)');
  const receive = library.func('intptr_t recv(int socket, void *frame, size_t length, int flags)');
  const close = library.func('int close(int socket)');
  const orThrow = (what: string, result: number): number => {
    if (result >= 0) return result;
    throw new LabFailure(`listen on ${interfaceName}: ${what}: ${getSystemErrorMessage(-koffi.errno())}`);
  };

  const descriptor = orThrow('socket', socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const filter = Buffer.alloc(16 + incomingOnly.length * 8);
  filter.writeUInt16LE(incomingOnly.length, 0);
  filter.writeBigUInt64LE(koffi.address(filter) + 16n, 8);
  for (const [index, [code, ifTrue, ifFalse, operand]] of incomingOnly.entries()) {
    filter.writeUInt16LE(code, 16 + index * 8);
    filter.writeUInt8(ifTrue, 18 + index * 8);
    filter.writeUInt8(ifFalse, 19 + index * 8);
    filter.writeUInt32LE(operand, 20 + index * 8);
  }
  orThrow('filter', setOption(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, filter, 16));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bufferBytes);
  orThrow('buffer', setOption(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length));
  const request = Buffer.alloc(40);
  request.write(interfaceName);
  orThrow('index', ioctl(descriptor, SIOCGIFINDEX, request));
  const address = Buffer.alloc(20);
  address.writeUInt16LE(AF_PACKET, 0);
  address.writeUInt16BE(ETH_P_ALL, 2);
  address.writeInt32LE(request.readInt32LE(16), 4);
  orThrow('bind', bind(descriptor, address, address.length));
  const stamp = Buffer.alloc(16);
  // The first call turns time stamps on; it fails because there was no frame yet.
  ioctl(descriptor, SIOCGSTAMPNS, stamp);

  const room = Buffer.alloc(frameBytes);
  return {
    drain(take) {
      for (;;) {
        const length: number = receive(descriptor, room, room.length, 0);
        if (length < 0) return;
        const isStamped = ioctl(descriptor, SIOCGSTAMPNS, stamp) === 0;
        const atMs = isStamped
          ? Number(stamp.readBigInt64LE(0)) * 1_000 + Number(stamp.readBigInt64LE(8)) / 1e6
          : Date.now();
        take(room.subarray(0, length), atMs);
      }
    },
    lost() {
      const counts = Buffer.alloc(12);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(counts.length);
      orThrow('statistics', getOption(descriptor, SOL_PACKET, PACKET_STATISTICS, counts, length));
      return counts.readUInt32LE(4);
    },
    close: () => void close(descriptor),
  };
}
