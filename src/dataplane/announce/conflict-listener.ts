/**
 * ConflictListener hears which other machines claim EIPs of this node, for as long as they are its own. The kernel passes
 * only frames that claim one of them (claim-filter.ts), and nothing waits for them: whoever listens reads from time to time.
 */
import { familyOf, type Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import type { AddressHolder } from './announcer.ts';
import { announcements, question, readAnyClaim } from './frames.ts';
import { isRefusal, type OpenPacketSocket, type PacketSocket } from './packet-socket.ts';

/** A machine says that it has an address. Its MAC address may be one of this node. */
export interface AddressClaim extends AddressHolder {
  readonly ip: Ip;
}

export interface ConflictListener {
  /** Listens for claims of these EIPs on the interfaces where they are announced, and of no others. */
  listen(claims: readonly Claim[]): void;
  /** What was heard since the last call; frames of the interface on which they came are left out. */
  heard(): readonly AddressClaim[];
  /** Asks who else has the EIP. An answer is heard later; it changes nobody's neighbour table. */
  ask(claim: Claim): void;
  /** Announces the EIP once. */
  announce(claim: Claim): void;
  /** May be called twice. */
  close(): void;
}

interface Ear {
  readonly interfaceName: string;
  readonly socket: PacketSocket;
}

export const createConflictListener = (open: OpenPacketSocket): ConflictListener => {
  /** By interface and family. */
  const ears = new Map<string, Ear>();
  let ipsByEar = new Map<string, { readonly interfaceName: string; readonly ips: Ip[] }>();

  const drop = (key: string): void => {
    ears.get(key)?.socket.close();
    ears.delete(key);
  };
  /** Opens what is missing. An interface that is not there, or not any more, is tried again with the next question. */
  const earFor = (interfaceName: string, ip: Ip): Ear | undefined => {
    const family = familyOf(ip);
    const key = `${interfaceName} ${family}`;
    const known = ears.get(key);
    if (known !== undefined) return known;
    const opened = open(interfaceName, family);
    if (isRefusal(opened)) return undefined;
    const ear = { interfaceName, socket: opened };
    ears.set(key, ear);
    if (opened.heed(ipsByEar.get(key)?.ips ?? []) === undefined) return ear;
    drop(key);
    return undefined;
  };
  const send = ({ ip, interfaces }: Claim, framesFor: (mac: string) => readonly Buffer[]): void => {
    for (const interfaceName of interfaces) {
      const ear = earFor(interfaceName, ip);
      const refusals = ear === undefined ? [] : framesFor(ear.socket.mac).map((frame) => ear.socket.send(frame));
      // An interface that went away and came back is another one to the kernel: the next question opens a new socket.
      const isGone = refusals.some((refusal) => refusal !== undefined && refusal.kind !== 'busy');
      if (isGone) drop(`${interfaceName} ${familyOf(ip)}`);
    }
  };

  return {
    listen: (claims) => {
      ipsByEar = new Map();
      for (const { ip, interfaces } of claims) {
        for (const interfaceName of interfaces) {
          const key = `${interfaceName} ${familyOf(ip)}`;
          const known = ipsByEar.get(key);
          if (known === undefined) ipsByEar.set(key, { interfaceName, ips: [ip] });
          else known.ips.push(ip);
        }
      }
      for (const key of [...ears.keys()]) if (!ipsByEar.has(key)) drop(key);
      for (const [key, { interfaceName, ips }] of ipsByEar) {
        const known = ears.get(key);
        if (known !== undefined && known.socket.heed(ips) !== undefined) drop(key);
        const [first] = ips;
        if (first !== undefined) earFor(interfaceName, first);
      }
    },
    heard: () => {
      const claims = new Map<string, AddressClaim>();
      for (const { interfaceName, socket } of ears.values()) {
        for (const frame of socket.receive()) {
          const claim = readAnyClaim(frame);
          if (claim === undefined || claim.mac === socket.mac || claim.sender === socket.mac) continue;
          const { ip, mac } = claim;
          claims.set(`${ip} ${mac} ${interfaceName}`, { ip, mac, interface: interfaceName });
        }
      }
      return [...claims.values()];
    },
    ask: (claim) => send(claim, (mac) => [question(claim.ip, mac)]),
    announce: (claim) => send(claim, (mac) => announcements(claim.ip, mac)),
    close: () => {
      for (const key of [...ears.keys()]) drop(key);
    },
  };
};
