/**
 * Neighbours asks the same few machines again and again whether they are there, and says who has spoken since. Its sockets
 * stay open, because opening one for each question costs more than the question, and nothing waits for answers: who asks
 * again finds the answers to what was asked before.
 */
import { familyOf, type Ip, type IpFamily } from '../../core/ip/index.ts';
import { probe, readClaim } from './frames.ts';
import { isRefusal, type OpenPacketSocket, type PacketSocket } from './packet-socket.ts';

export interface Neighbours {
  /** The addresses of which something was heard on open sockets since the last call. */
  heard(): ReadonlySet<Ip>;
  /** Asks for addresses on an interface; those for which a question has left. Sockets on other interfaces are closed. */
  ask(interfaceName: string, ips: readonly Ip[]): ReadonlySet<Ip>;
  /** May be called twice. */
  close(): void;
}

export const createNeighbours = (open: OpenPacketSocket): Neighbours => {
  const sockets = new Map<IpFamily, PacketSocket>();
  let place = '';

  const socketFor = (family: IpFamily): PacketSocket | undefined => {
    const known = sockets.get(family);
    if (known !== undefined) return known;
    const opened = open(place, family);
    if (isRefusal(opened)) return undefined;
    sockets.set(family, opened);
    return opened;
  };
  const drop = (family: IpFamily): void => {
    sockets.get(family)?.close();
    sockets.delete(family);
  };
  const close = (): void => {
    for (const family of [...sockets.keys()]) drop(family);
  };

  return {
    heard: () => {
      const heard = new Set<Ip>();
      for (const socket of sockets.values()) {
        for (const frame of socket.receive()) {
          const claim = readClaim(frame);
          if (claim !== undefined && claim.mac !== socket.mac) heard.add(claim.ip);
        }
      }
      return heard;
    },
    ask: (interfaceName, ips) => {
      if (interfaceName !== place) close();
      place = interfaceName;
      const asked = new Set<Ip>();
      for (const ip of ips) {
        const family = familyOf(ip);
        const socket = socketFor(family);
        const refusal = socket?.send(probe(ip, socket.mac));
        if (socket !== undefined && refusal === undefined) asked.add(ip);
        // An interface that went away and came back is another one to the kernel: the next question opens a new socket.
        else if (refusal !== undefined && refusal.kind !== 'busy') drop(family);
      }
      return asked;
    },
    close,
  };
};
