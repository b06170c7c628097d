/**
 * Who asks the kernel of a node whether it is there (src/agent/heartbeat/kernel-probe.ts) gets no answer any more when that kernel has let go
 * of its EIPs by itself. So the other nodes take them over as soon as they are free, and not before, whatever their clocks say: the
 * answers end by the same clock, and in the same moment, as the lease of the EIPs. A node that was told to hold nothing always answers.
 */
import { TABLE } from '../nft/stored.ts';
import type { SetContent } from './set-batch.ts';

export const kernelProbeTable = { family: 'inet', table: `${TABLE}_knock` } as const;

/** There while the node is told to hold something; and while the kernel does. Both know one element, the protocol of a knock. */
const TOLD = 'told';
const LEASED = 'leased';
const element = { key: new Uint8Array([6]) };

/** The table, so that it can be loaded over what is there. Nothing else opens connections to a node through the tunnel. */
export const kernelProbeScript = (device: string): string => {
  const place = `${kernelProbeTable.family} ${kernelProbeTable.table}`;
  return [
    `add table ${place}`,
    `add set ${place} ${TOLD} { type inet_proto; }`,
    `add set ${place} ${LEASED} { type inet_proto; flags timeout; }`,
    `add chain ${place} answer { type filter hook input priority filter - 10; policy accept; }`,
    `flush chain ${place} answer`,
    `add rule ${place} answer iifname "${device}" meta l4proto @${TOLD} meta l4proto != @${LEASED} tcp flags & (syn | ack) == syn drop`,
    '',
  ].join('\n');
};

/** What the sets are to hold, for the lease of what is held; undefined when nothing is. */
export const kernelProbeSets = (leaseMs: number | undefined): readonly SetContent[] => [
  { ...kernelProbeTable, set: TOLD, elements: leaseMs === undefined ? [] : [element] },
  { ...kernelProbeTable, set: LEASED, elements: leaseMs === undefined ? [] : [{ ...element, timeoutMs: leaseMs }] },
];
