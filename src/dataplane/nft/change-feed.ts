/**
 * What the kernel tells about changes of nftables, as netlink messages. `nft monitor` would tell the same, but in nft
 * 1.0.6 it prints megabytes of foreign memory for each element of a map with a joined interval key, such as dst4
 * (seen 2026-11), and it formats every change of every other table. Reading never blocks; whoever has a feed open asks
 * from time to time.
 */
import { EgressError } from '../../api/error.ts';
import { errorText, loadLibc } from '../libc.ts';
import { openNetfilterSocket } from '../netfilter-socket.ts';

/** An open subscription. */
export interface ChangeFeed {
  /** The messages since the last call, in order; `lost` when the kernel had to throw some away. */
  receive(): readonly Buffer[] | 'lost';
  /** May be called twice. */
  close(): void;
}

/** Subscribes: all changes from now on. Throws NFT_UNHEARD if the kernel does not tell them. */
export type OpenChangeFeed = () => ChangeFeed;

const NFNLGRP_NFTABLES = 7;

// Room for a change of some ten thousand elements between two reads.
const BUFFER_BYTES = 16 * 1024 * 1024;
// One call of receive takes no more, so that a flood of changes cannot hold up the process.
const MESSAGES_AT_ONCE = 1024;

/** Loads what opening takes: a native addon. Feeds belong to the network namespace of the caller. */
export const loadChangeFeed = async (): Promise<OpenChangeFeed> => {
  const libc = await loadLibc();
  return () => {
    const socket = openNetfilterSocket(libc, { groups: [NFNLGRP_NFTABLES], bufferBytes: BUFFER_BYTES });
    if (typeof socket === 'number') {
      throw new EgressError('NFT_UNHEARD', `listen to changes of nftables: ${errorText(socket)}`);
    }
    return {
      receive: () => {
        const messages: Buffer[] = [];
        while (messages.length < MESSAGES_AT_ONCE) {
          const message = socket.receive();
          if (message === undefined) break;
          // What came before does not matter any more.
          if (message === 'lost') return 'lost';
          messages.push(message);
        }
        return messages;
      },
      close: () => socket.close(),
    };
  };
};
