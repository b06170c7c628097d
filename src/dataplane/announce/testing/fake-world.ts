/** The world of the conformance suites in memory. */
import { createAnnouncer } from '../announcer.ts';
import type { ConflictWorld } from './conflict-conformance.ts';
import { createFakeSegment } from './fake-segment.ts';

const MAC = '66:00:00:00:00:01';
const PEER_MAC = '66:00:00:00:00:02';

/** This node and one other machine on a fake segment. */
export const openFakeWorld = async (): Promise<ConflictWorld> => {
  const segment = createFakeSegment({ eth0: MAC });
  const peer = segment.host(PEER_MAC);
  const opened: { close(): void }[] = [];
  return {
    open: segment.open,
    interfaceName: 'eth0',
    mac: MAC,
    peer: {
      mac: PEER_MAC,
      believe: async (ip, mac) => {
        peer.neighbours.set(ip, mac);
      },
      whereIs: async (ip) => peer.neighbours.get(ip),
      have: async (ip) => {
        peer.addresses.add(ip);
      },
      announce: peer.announce,
    },
    announcer: (deps) => {
      const announcer = createAnnouncer({ open: segment.open, ...deps });
      opened.push(announcer);
      return announcer;
    },
    [Symbol.asyncDispose]: async () => {
      for (const announcer of opened) announcer.close();
    },
  };
};
