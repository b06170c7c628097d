/** One frame that uses an address: it claims it to the neighbours, or is sent in its name. */
export interface Use {
  readonly mac: string;
  readonly ip: string;
  readonly kind: 'claim' | 'traffic';
}

const typeAt = 12;
const bodyAt = 14;
const types = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd } as const;
const icmpv6 = 58;
const neighbourAdvertisement = 136;
const targetLinkOption = 2;

/** Which address the frame uses; undefined for one that uses none, such as a probe for a free address. */
export function useOf(frame: Buffer): Use | undefined {
  if (frame.length < bodyAt + 20) return undefined;
  const mac = macAt(frame, 6);
  switch (frame.readUInt16BE(typeAt)) {
    case types.arp: {
      if (frame.length < bodyAt + 28) return undefined;
      const ip = ipv4At(frame, bodyAt + 14);
      // A neighbour believes the sender of any ARP message, also of a mere question. Its address is in the message itself.
      return ip === '0.0.0.0' ? undefined : { mac: macAt(frame, bodyAt + 8), ip, kind: 'claim' };
    }
    case types.ipv4:
      return { mac, ip: ipv4At(frame, bodyAt + 12), kind: 'traffic' };
    case types.ipv6:
      return frame.length < bodyAt + 40 ? undefined : ipv6Use(frame, mac);
    default:
      return undefined;
  }
}

function ipv6Use(frame: Buffer, mac: string): Use | undefined {
  const messageAt = bodyAt + 40;
  const isIcmp = frame[bodyAt + 6] === icmpv6;
  if (isIcmp && frame[messageAt] === neighbourAdvertisement && frame.length >= messageAt + 24) {
    const optionAt = messageAt + 24;
    const hasLink = frame.length >= optionAt + 8 && frame[optionAt] === targetLinkOption;
    return { mac: hasLink ? macAt(frame, optionAt + 2) : mac, ip: ipv6At(frame, messageAt + 8), kind: 'claim' };
  }
  const ip = ipv6At(frame, bodyAt + 8);
  return ip === '::' ? undefined : { mac, ip, kind: 'traffic' };
}

const macAt = (frame: Buffer, at: number): string => frame.toString('hex', at, at + 6).replace(/..(?!$)/g, '$&:');

const ipv4At = (frame: Buffer, at: number): string => frame.subarray(at, at + 4).join('.');

/** As people write it; the platform's own reading of URLs knows how to shorten it. */
const ipv6At = (frame: Buffer, at: number): string => {
  const groups = Array.from({ length: 8 }, (_, index) => frame.readUInt16BE(at + 2 * index).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
};
