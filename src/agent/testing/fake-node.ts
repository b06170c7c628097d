/** A node in memory: kernel, programs and network segment hold state as real ones do. Read FakeNode first. */
import { createAnnouncer } from '../../dataplane/announce/announcer.ts';
import { createFakeSegment, type FakeSegment } from '../../dataplane/announce/testing/fake-segment.ts';
import { createFakeConntrack, type FakeConntrack } from '../../dataplane/conntrack/testing/fake-conntrack.ts';
import { createFakeGate, type FakeGate } from '../../dataplane/gate/testing/fake-gate.ts';
import { createNetwork } from '../../dataplane/ip/network.ts';
import { createFakeNetwork, type FakeNetwork, usualNames } from '../../dataplane/ip/testing/fake-network.ts';
import { createFakeNftables } from '../../dataplane/nft/testing/fake.ts';
import { FakeNft } from '../../dataplane/nft/testing/fake-nft.ts';
import { memoryStateFile } from '../../dataplane/state-file.ts';
import { createFakeSysctls, type FakeSysctls } from '../../dataplane/sysctl/testing/fake-sysctls.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Kernel } from '../kernel/kernel.ts';
import type { GateNow } from '../reconcile/stale-connections.ts';

/** What a node is made of; a test meddles with the parts. It has eth0 with 10.6.0.11 and fd06::11. */
export interface FakeNode {
  readonly nft: FakeNft;
  readonly network: FakeNetwork;
  readonly sysctls: FakeSysctls;
  readonly conntrack: FakeConntrack;
  readonly segment: FakeSegment;
  readonly gate: FakeGate;
  /** The kernel as a new agent finds it: what the agents before have made is still there. */
  kernel(): Kernel;
}

/** No EIP is behind a gate. */
export const noGate: GateNow = { isOpen: () => true, isCarried: () => false };

/** A node that has just booted. */
export const createFakeNode = async (clock: Clock): Promise<FakeNode> => {
  const nft = new FakeNft();
  const file = memoryStateFile();
  const memory = memoryStateFile();
  const network = await createFakeNetwork({ clock });
  const sysctls = createFakeSysctls({ memory });
  const conntrack = createFakeConntrack();
  const segment = createFakeSegment({ eth0: '66:00:00:00:00:11' });
  const gate = createFakeGate(clock);
  return {
    nft,
    network,
    sysctls,
    conntrack,
    segment,
    gate,
    kernel: () => ({
      network: createNetwork({ programs: network.kernel.programs, names: usualNames, clock }),
      nftables: createFakeNftables({ kernel: nft, file, clock }),
      sysctls,
      conntrack,
      gate,
      announcer: createAnnouncer({ open: segment.open, clock, onConflict: () => {} }),
    }),
  };
};
