import { z } from 'zod';
import { must } from '../host/command.ts';

/**
 * Packets by source address, protocol and port, counted by the kernel before any socket sees them: a packet with a
 * wrong source address that gets no answer is counted too, which is what a leak test needs. Every packet is counted
 * once, in the first rule that can read it; later fragments have no ports, so they are counted without.
 */
const table = `table inet outside-counts {
  set ipv4_ports { typeof ip saddr . meta l4proto . th dport; flags dynamic; size 65536; counter; }
  set ipv6_ports { typeof ip6 saddr . meta l4proto . th dport; flags dynamic; size 65536; counter; }
  set ipv4_others { typeof ip saddr . meta l4proto; flags dynamic; size 65536; counter; }
  set ipv6_others { typeof ip6 saddr . meta l4proto; flags dynamic; size 65536; counter; }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "lo" return
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, mld2-listener-report } return
    meta l4proto { tcp, udp } update @ipv4_ports { ip saddr . meta l4proto . th dport } return
    meta l4proto { tcp, udp } update @ipv6_ports { ip6 saddr . meta l4proto . th dport } return
    update @ipv4_others { ip saddr . meta l4proto } return
    update @ipv6_others { ip6 saddr . meta l4proto } return
  }
}
`;

/** The packets of one source address with one protocol to one port. */
export interface PacketCount {
  readonly source: string;
  /** `tcp`, `udp`, `icmp`, `ipv6-icmp` or whatever nft calls it. */
  readonly protocol: string;
  /** Absent for protocols without ports and for fragments after the first. */
  readonly port?: number | undefined;
  readonly packets: number;
}

/** The packets of each source address, whatever they were. */
export function packetsBySource(counts: readonly PacketCount[]): Record<string, number> {
  const packets: Record<string, number> = {};
  for (const count of counts) packets[count.source] = (packets[count.source] ?? 0) + count.packets;
  return packets;
}

/** What a reset and a reading run in: nothing for this namespace, `ip netns exec NAME` for another one. */
type Prefix = readonly string[];

/** Starts counting at zero. May be called again: it replaces the table in one step. */
export async function resetCounts(prefix: Prefix = []): Promise<void> {
  const script = `table inet outside-counts\ndelete table inet outside-counts\n${table}`;
  await must('reset the packet counts', [...prefix, 'nft', '-f', '-'], { input: script });
}

// nft prints a number where it has no name for a protocol.
const keySchema = z.object({
  concat: z
    .tuple([z.string(), z.union([z.string(), z.int()])])
    .or(z.tuple([z.string(), z.union([z.string(), z.int()]), z.int()])),
});
const elementSchema = z.object({
  elem: z.object({ val: keySchema, counter: z.object({ packets: z.int() }) }),
});
const listingSchema = z.object({
  nftables: z.array(z.object({ set: z.object({ elem: z.array(elementSchema).default([]) }).optional() })),
});

/** All packets since the last reset. */
export async function readCounts(prefix: Prefix = []): Promise<PacketCount[]> {
  const argv = [...prefix, 'nft', '-j', 'list', 'table', 'inet', 'outside-counts'];
  const listing = listingSchema.parse(JSON.parse(await must('read the packet counts', argv)));
  return listing.nftables.flatMap(({ set }) =>
    (set?.elem ?? []).map(({ elem }) => {
      const [source, protocol, port] = elem.val.concat;
      return {
        source,
        protocol: String(protocol),
        ...(port === undefined ? {} : { port }),
        packets: elem.counter.packets,
      };
    }),
  );
}
