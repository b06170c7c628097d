import { instanceOf } from '../host/instance.ts';
import type { Lab } from '../lab.ts';
import { outside, setCable } from '../net/fabric.ts';
import { around, bothWays, setCuts } from './cuts.ts';

/** A way to lose a gateway node, and its undoing. */
export interface Loss {
  readonly name: string;
  /** Whether pods on the node still have a way out, through another one. */
  readonly leavesPods: boolean;
  strike(lab: Lab, node: string): Promise<void>;
  /** Undoes it; also heals every other cut of the lab. */
  heal(lab: Lab, node: string): Promise<void>;
}

const healCuts = (lab: Lab): Promise<void> => setCuts(lab, []);
const others = (lab: Lab, node: string): string[] =>
  lab.status.nodes.map(({ name }) => name).filter((name) => name !== node);

/** The losses that a gateway has to survive. */
export const losses: readonly Loss[] = [
  {
    name: 'power off',
    leavesPods: false,
    strike: (lab, node) => lab.power('off', node),
    heal: (lab, node) => lab.power('on', node),
  },
  {
    name: 'link down',
    leavesPods: false,
    strike: (lab, node) => setCable(instanceOf(lab.name), node, 'down'),
    heal: (lab, node) => setCable(instanceOf(lab.name), node, 'up'),
  },
  {
    // The cable is well, the other nodes are reached; only the router is silent. No node can see that but this one.
    name: 'uplink lost',
    leavesPods: true,
    strike: (lab, node) => setCuts(lab, bothWays(node, outside.name, 'everything')),
    heal: healCuts,
  },
  {
    // The node is well and still has its EIPs and its router; only what comes through the tunnel is lost.
    name: 'tunnel cut',
    leavesPods: false,
    strike: (lab, node) => setCuts(lab, around(node, others(lab, node), 'tunnel')),
    heal: healCuts,
  },
];

/** The router is silent in one family. The node still has its tunnel and the other family. */
export const silences: readonly Loss[] = (['ipv4', 'ipv6'] as const).map((family) => ({
  name: `router silent in ${family}`,
  leavesPods: true,
  strike: (lab, node) => setCuts(lab, bothWays(node, outside.name, family)),
  heal: healCuts,
}));
