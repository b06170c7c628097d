/** A node in the hands of the agent's own code: network, table and gate. */
import { callInside } from '../../lab/net/enter.ts';
import type { NodeDesired } from '../../src/core/node/desired.ts';
import { createGateTables, openGateSets } from '../../src/dataplane/gate/gate.ts';
import { createNetwork, type Network } from '../../src/dataplane/ip/network.ts';
import { loadRouteSocket } from '../../src/dataplane/ip/route-socket.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { loadNftLibrary, withNftLibrary } from '../../src/dataplane/nft/library.ts';
import { createNftables, type Nftables } from '../../src/dataplane/nft/nftables.ts';
import { machinePrograms } from '../../src/dataplane/program.ts';
import { memoryStateFile, type StateFile } from '../../src/dataplane/state-file.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { settings } from './cluster.ts';
import { enter, namespacePath } from './site.ts';

// As in the agent: programs are for what these do not do.
const [libc, openRouteSocket, openLibrary] = await Promise.all([loadLibc(), loadRouteSocket(), loadNftLibrary()]);

/** Nobody renews what is held here: it is to outlast every run. */
const leaseMs = 24 * 3_600_000;

export interface Node {
  readonly network: Network;
  readonly table: Nftables;
  /** Applies a whole NodeDesired in the order of the agent; throws if anything is refused. */
  apply(desired: NodeDesired): Promise<void>;
  /** Makes the gate and opens it for what the node owns. */
  openGate(desired: NodeDesired): Promise<void>;
}

/** The kernel behind a namespace. `file` is what the agent of a node keeps over a restart. */
export function openNode(namespace: string, file: StateFile = memoryStateFile()): Node {
  const path = namespacePath(namespace);
  const inside = machinePrograms(enter(namespace));
  const programs = withNftLibrary(inside, callInside(path, openLibrary));
  const socket = callInside(path, openRouteSocket);
  const names = { tunnel: settings.device, holder: settings.holder };
  const network = createNetwork({ programs, socket, names, clock: systemClock });
  const table = createNftables({
    programs,
    file,
    // A feed hears the namespace of this process, and nobody watches here.
    openChangeFeed: () => {
      throw new Error('a benchmark does not watch');
    },
    clock: systemClock,
    random: Math.random,
  });
  return {
    network,
    table,
    apply: async (desired) => {
      if (desired.problems.length > 0) throw new Error(desired.problems[0]?.finding.sentence);
      const grown = await network.grow(desired.network);
      // The module for settings writes the files of its own namespace; here a program does it in the other one.
      const assignments = [...desired.sysctls].map(([path, value]) => `${path}=${value}`);
      const { code, stderr } = await programs.run(['sysctl', '-qw', ...assignments]);
      if (code !== 0) throw new Error(`${namespace}: ${stderr}`);
      await table.apply(desired.table);
      const trimmed = await network.trim(desired.network);
      const [refusal] = [...grown.refused, ...trimmed.refused];
      if (refusal !== undefined) throw new Error(`${namespace}: ${refusal.what}: ${refusal.message}`);
    },
    openGate: async ({ claims }) => {
      await createGateTables(inside, settings.device).prepare();
      const gateSets = callInside(path, () => openGateSets(libc, () => 1));
      const ips = claims.map(({ ip }) => ip);
      const refused =
        gateSets.cover(ips) ??
        gateSets.hold(
          ips.map((ip) => ({ ip, epoch: 1, isAnswered: true })),
          leaseMs,
        );
      gateSets.close();
      if (refused !== undefined) throw new Error(`${namespace}: the gate: ${refused}`);
    },
  };
}
