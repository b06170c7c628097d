import { z } from 'zod';
import { must } from '../host/command.ts';

/**
 * Packets by source address, counted by the kernel before any socket sees them: a packet with a wrong source address
 * that gets no answer is counted too, which is what a leak test needs.
 */
const table = `table inet outside-counts {
  set ipv4_sources { type ipv4_addr; flags dynamic; size 65536; counter; }
  set ipv6_sources { type ipv6_addr; flags dynamic; size 65536; counter; }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "lo" return
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, mld2-listener-report } return
    add @ipv4_sources { ip saddr }
    add @ipv6_sources { ip6 saddr }
  }
}
`;

/** Starts counting at zero. May be called again: it replaces the table in one step. */
export async function resetCounts(): Promise<void> {
  const script = `table inet outside-counts\ndelete table inet outside-counts\n${table}`;
  await must('reset the packet counts', ['nft', '-f', '-'], { input: script });
}

const elementSchema = z.object({
  elem: z.object({ val: z.string(), counter: z.object({ packets: z.int() }) }),
});
const listingSchema = z.object({
  nftables: z.array(z.object({ set: z.object({ elem: z.array(elementSchema).default([]) }).optional() })),
});

/** Packets by source address since the last reset. */
export async function readCounts(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const listing = await must('read the packet counts', ['nft', '-j', 'list', 'table', 'inet', 'outside-counts']);
  for (const { set } of listingSchema.parse(JSON.parse(listing)).nftables) {
    for (const { elem } of set?.elem ?? []) counts[elem.val] = elem.counter.packets;
  }
  return counts;
}
