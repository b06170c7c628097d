/**
 * What the kernel tells about changes of nftables, as netlink messages. `nft monitor` would tell the same, but in nft
 * 1.0.6 it prints megabytes of foreign memory for each element of a map with a joined interval key, such as dst4
 * (seen 2026-11), and it formats every change of every other table. Node has no netlink sockets, so the calls go through
 * koffi to the C library that Node itself has loaded. Reading never blocks; whoever has a feed open asks from time to time.
 */
import { getSystemErrorMessage } from 'node:util';
import { EgressError } from '../../api/error.ts';

/** An open subscription. */
export interface ChangeFeed {
  /** The messages since the last call, in order; `lost` when the kernel had to throw some away. */
  receive(): readonly Buffer[] | 'lost';
  /** May be called twice. */
  close(): void;
}

/** Subscribes: all changes from now on. Throws NFT_UNHEARD if the kernel does not tell them. */
export type OpenChangeFeed = () => ChangeFeed;

// From netlink(7) and the headers of Linux; alike on x86_64 and arm64.
const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const NETLINK_NETFILTER = 12;
const NFNLGRP_NFTABLES = 7;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const EAGAIN = 11;

// Room for a change of some ten thousand elements between two reads; memory is used only while messages wait.
const BUFFER_BYTES = 16 * 1024 * 1024;
// The kernel packs messages into pieces of at most a page or 8 KB; a single larger message would be cut.
const MESSAGE_BYTES = 64 * 1024;
// One call of receive takes no more, so that a flood of changes cannot hold up the process.
const MESSAGES_AT_ONCE = 1024;

/** Loads what opening takes: a native addon. Feeds belong to the network namespace of the caller. */
export const loadChangeFeed = async (): Promise<OpenChangeFeed> => {
  // Imported here and not above, so that the other commands of the program start without the addon.
  const { default: koffi } = await import('koffi');
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const setOption = library.func('int setsockopt(int socket, int level, int name, void *value, uint32_t length)');
  const bind = library.func('int bind(int socket, void *address, uint32_t length)');
  const receive = library.func('intptr_t recv(int socket, void *message, size_t length, int flags)');
  const close = library.func('int close(int socket)');

  const refusal = (): EgressError => {
    const why = getSystemErrorMessage(-koffi.errno());
    return new EgressError('NFT_UNHEARD', `listen to changes of nftables: ${why}`);
  };

  return () => {
    let descriptor: number = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (descriptor < 0) throw refusal();
    const size = Buffer.alloc(4);
    size.writeUInt32LE(BUFFER_BYTES);
    // Without NET_ADMIN the kernel refuses; then the default size has to do.
    setOption(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length);
    // The kernel's struct sockaddr_nl: family, padding, port (0: the kernel chooses), groups.
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK, 0);
    address.writeUInt32LE(1 << (NFNLGRP_NFTABLES - 1), 8);
    if (bind(descriptor, address, address.length) < 0) {
      const error = refusal();
      close(descriptor);
      throw error;
    }
    const room = Buffer.alloc(MESSAGE_BYTES);
    return {
      receive: () => {
        const messages: Buffer[] = [];
        while (messages.length < MESSAGES_AT_ONCE) {
          const length: number = receive(descriptor, room, room.length, 0);
          if (length >= 0) messages.push(Buffer.from(room.subarray(0, length)));
          else if (koffi.errno() === EAGAIN) break;
          // ENOBUFS, above all: messages were thrown away. What came before them does not matter any more.
          else return 'lost';
        }
        return messages;
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
