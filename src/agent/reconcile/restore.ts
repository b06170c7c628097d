/**
 * What the kernel holds of ours when the agent starts, from a run before. Rules outlive the agent, and a restart must not
 * move anything: EIPs that are held are not asked for again, and gateway nodes keep their numbers.
 */

import type { TunnelView } from '../../core/cluster/view.ts';
import { type Ip, parseIp } from '../../core/ip/index.ts';
import { GATEWAY_NUMBERS, gatewayTable } from '../../core/node/numbers.ts';
import type { Kernel } from '../kernel/kernel.ts';
import { slotsOf } from './stale-connections.ts';

/** What was found. */
export interface RestoredState {
  /** EIPs on the device that holds them. */
  readonly eips: ReadonlySet<Ip>;
  /** Whether there is a table of ours. */
  readonly hasTable: boolean;
  /** Slots that connections may have. */
  readonly slots: ReadonlySet<number>;
  /** Addresses of pods that the table knew; undefined without a table. */
  readonly sources: ReadonlySet<Ip> | undefined;
  /** gateway node -> its number in marks and routing tables */
  readonly gatewayNumbers: ReadonlyMap<string, number>;
}

/** Reads the kernel. Rejects with an EgressError when it cannot be read. */
export const readRestoredState = async (
  { network, nftables }: Pick<Kernel, 'network' | 'nftables'>,
  tunnels: readonly TunnelView[],
): Promise<RestoredState> => {
  const [actual, table] = [await network.read(), await nftables.read()];
  const holders = new Set(actual.links.filter(({ role }) => role === 'holder').map(({ name }) => name));
  const nodeByIp = new Map(
    tunnels.flatMap(({ node, recorded: { ipv4, ipv6 } }) =>
      [ipv4, ipv6].filter((ip) => ip !== undefined).map((ip): [Ip, string] => [ip, node]),
    ),
  );
  const gatewayNumbers = new Map<string, number>();
  for (const { table: number, via } of actual.routes) {
    const gateway = number - gatewayTable(0);
    const node = via === undefined ? undefined : nodeByIp.get(via);
    if (node !== undefined && gateway >= 1 && gateway <= GATEWAY_NUMBERS) gatewayNumbers.set(node, gateway);
  }
  return {
    eips: new Set(actual.addresses.filter(({ device }) => holders.has(device)).map(({ ip }) => ip)),
    hasTable: table !== undefined,
    slots: slotsOf(table?.elements.slot_fwd ?? new Map()),
    sources: table && new Set([...table.elements.pod4.keys(), ...table.elements.pod6.keys()].flatMap(ipIn)),
    gatewayNumbers,
  };
};

/** Nothing: the kernel of a node that has just booted, or one that cannot be read. */
export const nothingToRestore: RestoredState = {
  hasTable: false,
  eips: new Set(),
  slots: new Set(),
  sources: undefined,
  gatewayNumbers: new Map(),
};

const ipIn = (text: string): Ip[] => {
  const parsed = parseIp(text);
  return parsed.ok ? [parsed.value] : [];
};
