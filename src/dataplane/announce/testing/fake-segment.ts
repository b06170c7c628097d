/**
 * A network segment in memory: the interfaces of this node, and other machines that behave as a kernel does. An announcer
 * whose sockets are opened here is the fake of the announcer; it passes the same conformance suite as one on a kernel.
 */
import { type Ip, parseIp } from '../../../core/ip/index.ts';
import { announcements, readAnyClaim, readClaim } from '../frames.ts';
import type { OpenPacketSocket, SocketRefusal } from '../packet-socket.ts';

/** Another machine on the segment. */
export interface FakeHost {
  readonly mac: string;
  /** Addresses that it has: it answers for them. */
  readonly addresses: Set<Ip>;
  /** How many questions for them it still loses, as one that is too busy does. */
  losing: number;
  /** Where it believes addresses to be. As in Linux, an announcement changes an entry and makes none. */
  readonly neighbours: Map<Ip, string>;
  /** Announces an address, whether it has it or not. */
  announce(ip: Ip): void;
}

export interface FakeSegment {
  /** The interfaces of this node: MAC address by name. One that is deleted is gone for open sockets too. */
  readonly interfaces: Map<string, string>;
  /** Every frame that this node has sent. */
  readonly sent: readonly { readonly interfaceName: string; readonly frame: Buffer }[];
  /** How many sockets are open. */
  readonly openSockets: number;
  /** How many frames sockets have let in. */
  readonly received: number;
  readonly open: OpenPacketSocket;
  host(mac: string): FakeHost;
}

/** What a socket has let in, and which frames it does. */
interface Inbox {
  readonly frames: Buffer[];
  lets: (frame: Buffer) => boolean;
}

const GONE: SocketRefusal = { why: 'no such device', kind: 'unusable' };

/** Makes a segment to which all interfaces of the node are connected. */
export const createFakeSegment = (interfaces: Readonly<Record<string, string>>): FakeSegment => {
  const macs = new Map(Object.entries(interfaces));
  const hosts: FakeHost[] = [];
  const sent: { readonly interfaceName: string; readonly frame: Buffer }[] = [];
  const inboxes = new Set<Inbox>();
  let received = 0;

  const deliverToNode = (frames: readonly Buffer[]): void => {
    for (const inbox of inboxes) {
      const taken = frames.filter((frame) => inbox.lets(frame));
      received += taken.length;
      inbox.frames.push(...taken);
    }
  };
  const deliverToHosts = (frame: Buffer): void => {
    const heard = readClaim(frame);
    for (const host of hosts) {
      const { mac, addresses, neighbours } = host;
      if (heard !== undefined && neighbours.has(heard.ip)) neighbours.set(heard.ip, heard.mac);
      const question = questionIn(frame);
      if (question === undefined || !addresses.has(question)) continue;
      if (host.losing > 0) host.losing -= 1;
      else deliverToNode(announcements(question, mac));
    }
  };

  return {
    interfaces: macs,
    sent,
    get openSockets() {
      return inboxes.size;
    },
    get received() {
      return received;
    },
    open: (interfaceName) => {
      const mac = macs.get(interfaceName);
      if (mac === undefined) return GONE;
      const inbox: Inbox = { frames: [], lets: () => true };
      inboxes.add(inbox);
      return {
        mac,
        send: (frame) => {
          if (!macs.has(interfaceName)) return GONE;
          sent.push({ interfaceName, frame });
          deliverToHosts(frame);
          return undefined;
        },
        receive: () => inbox.frames.splice(0),
        heed: (ips) => {
          if (!macs.has(interfaceName)) return GONE;
          const heeded = new Set(ips);
          inbox.lets = (frame) => {
            const claim = readAnyClaim(frame);
            return claim !== undefined && heeded.has(claim.ip);
          };
          return undefined;
        },
        close: () => {
          inboxes.delete(inbox);
        },
      };
    },
    host: (mac) => {
      const host: FakeHost = {
        mac,
        addresses: new Set(),
        losing: 0,
        neighbours: new Map(),
        announce: (ip) => deliverToNode(announcements(ip, mac)),
      };
      hosts.push(host);
      return host;
    },
  };
};

/** The address that an ARP request or a neighbour solicitation asks for. */
const questionIn = (frame: Buffer): Ip | undefined => {
  const isArpRequest = frame.readUInt16BE(12) === 0x0806 && frame.readUInt16BE(20) === 1;
  const isSolicitation = frame.readUInt16BE(12) === 0x86dd && frame[54] === 135;
  if (!isArpRequest && !isSolicitation) return undefined;
  const text = isArpRequest
    ? frame.subarray(38, 42).join('.')
    : (frame.toString('hex', 62, 78).match(/.{4}/g) ?? []).join(':');
  const parsed = parseIp(text);
  return parsed.ok ? parsed.value : undefined;
};
