/** Reach: which nodes this node gets to through its tunnel, and the numbers of the gateway nodes among them. */
import type { Decided } from '../cluster/finding.ts';
import type { TunnelView } from '../cluster/view.ts';
import { isInUse } from '../tunnels/tunnels.ts';
import { isSameSet } from '../values/equality.ts';
import { assignGatewayNumbers } from './gateway-numbers.ts';
import type { NodeInput, NodeSettings } from './input.ts';
import { remember } from './remember.ts';
import { canReach, endsOf, factsOf, haveSameEnds, type OwnTunnel, ownTunnelOf, type TunnelEnd } from './tunnel-ends.ts';

/** What a node knows of the tunnels. */
export interface Reach {
  readonly own: Decided<OwnTunnel>;
  /** The ends of all nodes, its own too. */
  readonly ends: ReadonlyMap<string, TunnelEnd>;
  /** The ends that packets get to, without its own; none while the node has no tunnel. */
  readonly peers: readonly TunnelEnd[];
  /** Numbers of the gateway nodes among the peers, as far as numbers go. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Nodes whose tunnels the controller calls Ready. */
  readonly ready: ReadonlySet<string>;
}

/** Makes a function that works out the reach of a node; `gateways` are the nodes that some policy names. */
export const createReach = () => {
  const endsFor = remember(
    (tunnels: readonly TunnelView[], settings: NodeSettings) => endsOf(tunnels.map(factsOf), settings),
    haveSameEnds,
  );
  const ownFor = remember(ownTunnelOf);
  const peersFor = remember((node: string, own: Decided<OwnTunnel>, ends: ReadonlyMap<string, TunnelEnd>) =>
    own.ok ? [...ends.values()].filter((end) => end.node !== node && canReach(own.value.parent, end.parent)) : [],
  );
  const gatewaysAmong = remember(
    (peers: readonly TunnelEnd[], gateways: ReadonlySet<string>): ReadonlySet<string> =>
      new Set(peers.map(({ node }) => node)).intersection(gateways),
  );
  const numbersFor = remember(assignGatewayNumbers);
  const readyFor = remember(
    (tunnels: readonly TunnelView[]): ReadonlySet<string> =>
      new Set(tunnels.filter((tunnel) => isInUse(tunnel.recorded.phase, tunnel)).map(({ node }) => node)),
    isSameSet,
  );
  const together = remember(
    (
      own: Reach['own'],
      ends: Reach['ends'],
      peers: Reach['peers'],
      numbers: Reach['numbers'],
      ready: Reach['ready'],
    ): Reach => ({ own, ends, peers, numbers, ready }),
  );
  return ({ node, host, tunnels, settings, gatewayNumbers }: ReachInput, gateways: ReadonlySet<string>): Reach => {
    const ends = endsFor(tunnels, settings);
    const own = ownFor(node, host, ends, settings);
    const peers = peersFor(node, own, ends);
    const numbers = numbersFor(gatewaysAmong(peers, gateways), gatewayNumbers);
    return together(own, ends, peers, numbers, readyFor(tunnels));
  };
};

type ReachInput = Pick<NodeInput, 'node' | 'host' | 'tunnels' | 'settings' | 'gatewayNumbers'>;
