/**
 * The calls of the C library that Node does not have: for packets below IP, for netlink, and to give memory back. They go
 * through koffi to the library that Node itself has loaded; one call takes half a microsecond. No program is started.
 */
import { getSystemErrorMessage } from 'node:util';

/** The calls, as in their manual pages: negative means failed, and then `errno` says why. */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  setsockopt(socket: number, level: number, name: number, value: Buffer, length: number): number;
  bind(socket: number, address: Buffer, length: number): number;
  ioctl(socket: number, request: number, data: Buffer): number;
  send(socket: number, message: Buffer, length: number, flags: number): number;
  recv(socket: number, message: Buffer, length: number, flags: number): number;
  close(socket: number): number;
  /**
   * Closes a socket in another thread, at some time. The kernel lets whoever closes a packet socket wait until no processor
   * looks at it any more: 8 to 16 ms (Linux 6.18), in which this thread would do nothing.
   */
  closeAside(socket: number): void;
  /** Says what is planned with a part of the memory of this process, by its address and length in bytes. */
  madvise(address: number, length: number, advice: number): number;
  /** Gives the kernel back what the C library keeps of memory that was freed; undefined where the library has no such call. */
  readonly mallocTrim: ((keepBytes: number) => number) | undefined;
  clockGettime(clock: number, time: Buffer): number;
  /** The number of the error that the last call failed with. */
  errno(): number;
  /** Where the bytes are in memory, for structures with pointers. Good as long as somebody holds the buffer. */
  addressOf(bytes: Buffer): bigint;
}

// From socket(7) and the headers of Linux; alike on x86_64 and arm64.
export const SOCK_RAW = 3;
export const SOCK_NONBLOCK = 0o4000;
export const SOCK_CLOEXEC = 0o2000000;
export const SOL_SOCKET = 1;
export const SO_ATTACH_FILTER = 26;
export const SO_SNDBUFFORCE = 32;
export const SO_RCVBUFFORCE = 33;
export const EPERM = 1;
export const ENOENT = 2;
export const EAGAIN = 11;
export const EEXIST = 17;
export const ENOBUFS = 105;

/** Loads the native addon: about 10 ms and 3 MB. Sockets belong to the network namespace of the thread that opens them. */
export const loadLibc = async (): Promise<Libc> => {
  // Imported here and not above, so that the other commands of the program start without the addon.
  const { default: koffi } = await import('koffi');
  const library = koffi.load(null);
  const close = library.func('int close(int socket)');
  return {
    socket: library.func('int socket(int domain, int type, int protocol)'),
    setsockopt: library.func('int setsockopt(int socket, int level, int name, void *value, uint32_t length)'),
    bind: library.func('int bind(int socket, void *address, uint32_t length)'),
    ioctl: library.func('int ioctl(int socket, unsigned long request, void *data)'),
    send: library.func('intptr_t send(int socket, void *message, size_t length, int flags)'),
    recv: library.func('intptr_t recv(int socket, void *message, size_t length, int flags)'),
    close,
    closeAside: (socket) => {
      try {
        close.async(socket, () => {});
      } catch {
        // Too many are being closed already: then this one is waited for.
        close(socket);
      }
    },
    madvise: library.func('int madvise(uintptr_t address, size_t length, int advice)'),
    mallocTrim: await Promise.try(() => library.func('int malloc_trim(size_t keepBytes)')).catch(() => undefined),
    clockGettime: library.func('int clock_gettime(int clock, void *time)'),
    errno: () => koffi.errno(),
    addressOf: (bytes) => koffi.address(bytes),
  };
};

/** What an error number means, in a few words. */
export const errorText = (errno: number): string => getSystemErrorMessage(-errno);

/** A number as the kernel reads it where it wants an int. */
export const intBytes = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};

/** One instruction of a filter of a socket, as in bpf(4). */
export type FilterStep = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

const FILTER_HEAD_BYTES = 16;

/** Lets only those messages into a socket that a program of classic BPF takes. Zero, or negative as the calls. */
export const attachFilter = (libc: Libc, socket: number, steps: readonly FilterStep[]): number => {
  // The kernel's struct sock_fprog and, behind it, the instructions it points to: one buffer, so that both live as long.
  const bytes = Buffer.alloc(FILTER_HEAD_BYTES + steps.length * 8);
  bytes.writeUInt16LE(steps.length, 0);
  bytes.writeBigUInt64LE(libc.addressOf(bytes) + BigInt(FILTER_HEAD_BYTES), 8);
  for (const [index, [code, ifTrue, ifFalse, operand]] of steps.entries()) {
    const at = FILTER_HEAD_BYTES + index * 8;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(operand, at + 4);
  }
  return libc.setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, bytes, FILTER_HEAD_BYTES);
};
