/** A raw socket that hears all frames that come in on an interface, with the time at which the kernel took each. */
import koffi from 'koffi';
import { AF_PACKET, packetAddress } from '../../src/dataplane/announce/packet-socket.ts';
import { indexOfInterface } from '../../src/dataplane/interface.ts';
import {
  attachFilter,
  errorText,
  type FilterStep,
  intBytes,
  loadLibc,
  SO_RCVBUFFORCE,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
} from '../../src/dataplane/libc.ts';
import { LabFailure } from '../host/failure.ts';

export interface Capture {
  /** Calls with each frame since the last call; the frame is only valid during the call. */
  drain(take: (frame: Buffer, atMs: number) => void): void;
  /** Frames that the kernel had to throw away since the last call, because nobody drained. */
  lost(): number;
  close(): void;
}

// From packet(7) and the headers of Linux.
const ETH_P_ALL = 3;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;
const SIOCGSTAMPNS = 0x8907;
const frameBytes = 128;
const bufferBytes = 32 * 1024 * 1024;

/** What goes out is of no interest: load the direction (an extension of BPF, see filter.txt of Linux), compare with outgoing. */
const incomingOnly: readonly FilterStep[] = [
  [0x28, 0, 0, 0xfffff004],
  [0x15, 1, 0, 4],
  [0x06, 0, 0, frameBytes],
  [0x06, 0, 0, 0],
];

const libc = await loadLibc();
// The one call that only the lab makes.
const getOption = koffi.load(null).func('int getsockopt(int socket, int level, int name, void *value, void *length)');

/** Opens it in the namespace that the process is in at that moment. */
export function openCapture(interfaceName: string): Capture {
  const orThrow = (what: string, result: number): number => {
    if (result >= 0) return result;
    throw new LabFailure(`listen on ${interfaceName}: ${what}: ${errorText(libc.errno())}`);
  };

  const descriptor = orThrow('socket', libc.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  orThrow('filter', attachFilter(libc, descriptor, incomingOnly));
  orThrow('buffer', libc.setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, intBytes(bufferBytes), 4));
  const index = orThrow('index', indexOfInterface(libc, descriptor, interfaceName) ?? -1);
  const address = packetAddress(index, ETH_P_ALL);
  orThrow('bind', libc.bind(descriptor, address, address.length));
  const stamp = Buffer.alloc(16);
  // The first call turns time stamps on; it fails because there was no frame yet.
  libc.ioctl(descriptor, SIOCGSTAMPNS, stamp);

  const room = Buffer.alloc(frameBytes);
  return {
    drain(take) {
      for (;;) {
        const length = libc.recv(descriptor, room, room.length, 0);
        if (length < 0) return;
        const isStamped = libc.ioctl(descriptor, SIOCGSTAMPNS, stamp) === 0;
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
    close: () => void libc.close(descriptor),
  };
}
