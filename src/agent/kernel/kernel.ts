/** Kernel is everything that the agent can do to its node, as one value that tests replace by fakes. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ip } from '../../core/ip/index.ts';
import { type AddressHolder, type Announcer, createAnnouncer } from '../../dataplane/announce/announcer.ts';
import { loadPacketSockets } from '../../dataplane/announce/packet-socket.ts';
import { type Conntrack, createConntrack } from '../../dataplane/conntrack/conntrack.ts';
import { createCut } from '../../dataplane/conntrack/cut.ts';
import { createDropStaleConnections } from '../../dataplane/conntrack/stale-connections.ts';
import { createGateTables, type Gate, joinGate, openGateSets } from '../../dataplane/gate/gate.ts';
import { isOwnMac } from '../../dataplane/interface.ts';
import { createNetwork, type Network } from '../../dataplane/ip/network.ts';
import type { DeviceNames } from '../../dataplane/ip/owned.ts';
import { loadRouteSocket } from '../../dataplane/ip/route-socket.ts';
import { loadLibc } from '../../dataplane/libc.ts';
import { loadChangeFeed } from '../../dataplane/nft/change-feed.ts';
import { loadNftLibrary, withNftLibrary } from '../../dataplane/nft/library.ts';
import { createNftables, type Nftables } from '../../dataplane/nft/nftables.ts';
import { LENT_SIGNATURES } from '../../dataplane/nft/signatures.ts';
import { machinePrograms } from '../../dataplane/program.ts';
import { stateFile } from '../../dataplane/state-file.ts';
import { filesBelow } from '../../dataplane/sysctl/files.ts';
import { createSysctls, type Sysctls } from '../../dataplane/sysctl/sysctls.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** The modules of src/dataplane. */
export interface Kernel {
  readonly network: Network;
  readonly nftables: Nftables;
  readonly sysctls: Sysctls;
  readonly announcer: Announcer;
  readonly gate: Gate;
  readonly conntrack: Conntrack;
}

/** The parts of a kernel that somebody else may change behind our back. */
export type KernelPart = 'table' | 'network' | 'sysctls';

/** Where and how the kernel of this node is reached. */
export interface KernelDeps {
  readonly names: DeviceNames;
  /** For what must survive a restart of the agent but not of the node. */
  readonly stateFolder: string;
  readonly sysctlRoot: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** Another machine claims an EIP that was announced in the last seconds. */
  readonly onConflict: (ip: Ip, owner: AddressHolder) => void;
}

/** Where in the signatures that the table lends those of the thread of heartbeats begin. */
export const THREAD_SIGNATURES = LENT_SIGNATURES / 2;

/** The kernel of the node that this process runs on. Nothing is read or changed yet. */
export const openKernel = async (deps: KernelDeps): Promise<Kernel> => {
  const { names, stateFolder, sysctlRoot, clock, random, onConflict } = deps;
  const programs = machinePrograms();
  const forget = join(stateFolder, 'forget');
  const openLibrary = await loadNftLibrary();
  const openRouteSocket = await loadRouteSocket();
  const nftables = createNftables({
    programs: withNftLibrary(programs, openLibrary()),
    file: stateFile(join(stateFolder, 'table.json')),
    openChangeFeed: await loadChangeFeed(),
    clock,
    random,
  });
  let signed = 0;
  const libc = await loadLibc();
  const gateSets = openGateSets(libc, () => {
    signed = (signed + 1) % THREAD_SIGNATURES;
    return nftables.lentSignatures + signed;
  });
  return {
    network: createNetwork({ programs, socket: openRouteSocket(), names, clock }),
    nftables,
    gate: joinGate(createGateTables(programs, names.tunnel), gateSets),
    sysctls: createSysctls({ files: filesBelow(sysctlRoot), memory: stateFile(join(stateFolder, 'sysctls.json')) }),
    announcer: createAnnouncer({ open: await loadPacketSockets(), clock, onConflict, isOwn: isOwnMac }),
    conntrack: createConntrack({
      programs,
      readProc,
      forgetStrays: createDropStaleConnections(libc),
      cut: createCut(libc),
      commands: { ...stateFile(forget), path: forget },
    }),
  };
};

const readProc = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(join('/proc', path), 'utf8');
  } catch {
    // A kernel without connection tracking has no such file.
    return undefined;
  }
};
