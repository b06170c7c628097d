/**
 * Messages of the connection table as the kernel writes and reads them (linux/netfilter/nfnetlink_conntrack.h). Their form is
 * that of `../netlink`; values are in the order of the network. Here are the numbers; `heard.ts` reads, `requests.ts` writes.
 */

/** What a message is about. */
export const messages = { new: 0x100, get: 0x101, delete: 0x102 } as const;

/** Types of the outermost attributes. */
export const attributes = {
  original: 1,
  reply: 2,
  status: 3,
  protocolInfo: 4,
  sourceTranslation: 6,
  timeout: 7,
  mark: 8,
  id: 12,
  zone: 18,
  markMask: 21,
  statusMask: 26,
} as const;
/** Types inside a direction of a connection. */
export const tuple = { addresses: 1, protocol: 2 } as const;

/** Bits of a connection's status (enum ip_conntrack_status). */
export const status = { seenReply: 0x2, assured: 0x4, confirmed: 0x8, sourceTranslated: 0x10 } as const;
/** Both directions have spoken, and it leaves with another source: only such connections are worth carrying on. */
export const WORTHY = status.assured | status.sourceTranslated;

/** States of a TCP connection (enum tcp_conntrack); in those from `lastAck` on, both sides have said good-bye. */
export const tcpStates = { established: 3, lastAck: 6 } as const;
