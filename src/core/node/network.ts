/** The network part of a node: its two devices, and the ways from worker to gateway node and back. */

import { ofPair } from '../cluster/view.ts';
import { familyOf, type IpFamily, isIpv6 } from '../ip/index.ts';
import { compareText } from '../values/hash.ts';
import type {
  Claim,
  ForwardingDesired,
  LinkDesired,
  NeighbourDesired,
  NetworkDesired,
  RouteDesired,
  RuleDesired,
} from './desired.ts';
import type { NodeSettings } from './input.ts';
import {
  GATEWAY_MASK,
  gatewayMark,
  gatewayTable,
  JUMP_FROM,
  KIND_MASK,
  PRIORITIES,
  replyMark,
  replyTable,
  SLOT_KIND,
  WHOLE_MASK,
} from './numbers.ts';
import { familiesIn, type OwnTunnel, type TunnelEnd, underlayOf } from './tunnel-ends.ts';

/** What the network of a node is made from. */
export interface NetworkFacts {
  readonly settings: NodeSettings;
  /** Undefined: there is no tunnel, and nothing that needs one. */
  readonly tunnel: OwnTunnel | undefined;
  /** The nodes that can be reached through the tunnel, in the order of their names. */
  readonly peers: readonly TunnelEnd[];
  /** Numbers of the gateway nodes among the peers. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Whether traffic of other nodes leaves here, so that replies must find back. */
  readonly isGateway: boolean;
  readonly claims: readonly Claim[];
}

/** The network that a node should have. */
export const networkOf = (facts: NetworkFacts): NetworkDesired => {
  const { settings, claims } = facts;
  const ways = waysOf(facts);
  return {
    links: [
      ...(facts.tunnel === undefined ? [] : [tunnelLink(settings, facts.tunnel)]),
      // Also where no EIP is yet: the first one should not wait for its device.
      ...(facts.tunnel === undefined && claims.length === 0
        ? []
        : [{ kind: 'holder', name: settings.holder } as const]),
    ],
    addresses: [
      ...tunnelAddresses(facts),
      ...claims.map(({ ip }) => ({ device: settings.holder, ip, prefixLength: HOST_PREFIX[familyOf(ip)] })),
    ],
    rules: familiesIn(settings).flatMap((family) => rulesOf(family, ways)),
    routes: ways.flatMap(({ table, to }) => routesOf(settings, table, to)),
    neighbours: neighboursOf(facts),
    forwardings: forwardingsOf(facts),
    proxies: claims.flatMap(({ ip, interfaces }) => (isIpv6(ip) ? interfaces.map((device) => ({ device, ip })) : [])),
  };
};

const HOST_PREFIX = { 4: 32, 6: 128 } as const satisfies Record<IpFamily, number>;

const tunnelLink = (settings: NodeSettings, { end, parent, local, mtu }: OwnTunnel): LinkDesired => ({
  kind: 'vxlan',
  name: settings.device,
  id: settings.vxlanId,
  port: settings.port,
  parent: parent.name,
  local,
  mac: end.mac,
  mtu,
  hasChecksums: settings.hasChecksums,
  hasGro: settings.hasGro,
});

/** Without their range: others may use addresses of it, and the route to all of it would take them away. */
const tunnelAddresses = ({ settings, tunnel }: NetworkFacts) =>
  familiesIn(settings).flatMap((family) => {
    const ip = tunnel && ofPair(tunnel.end, family);
    return ip === undefined ? [] : [{ device: settings.device, ip, prefixLength: HOST_PREFIX[family] }];
  });

/** Packets with a mark go to a node, by a table of their own. */
interface MarkRoute {
  readonly mark: number;
  readonly mask: number;
  readonly table: number;
  readonly to: TunnelEnd;
}

/** The ways to gateway nodes by number, then those back to workers by mark. */
const waysOf = ({ peers, numbers, isGateway }: NetworkFacts): readonly MarkRoute[] => {
  const toGateways = peers.flatMap((to): MarkRoute[] => {
    const number = numbers.get(to.node);
    if (number === undefined) return [];
    return [{ mark: gatewayMark(number, 0), mask: GATEWAY_MASK, table: gatewayTable(number), to }];
  });
  const toWorkers = (isGateway ? peers : []).map(
    (to): MarkRoute => ({ mark: replyMark(to.bits), mask: WHOLE_MASK, table: replyTable(to.bits), to }),
  );
  return [...toGateways, ...toWorkers].toSorted((a, b) => a.table - b.table);
};

const rulesOf = (family: IpFamily, ways: readonly MarkRoute[]): readonly RuleDesired[] => {
  const lookups = ways.map(
    ({ mark, mask, table }): RuleDesired => ({
      family,
      priority: PRIORITIES.lookup,
      mark,
      mask,
      action: { kind: 'lookup', table },
    }),
  );
  if (lookups.length < JUMP_FROM) return lookups;
  return [
    {
      family,
      priority: PRIORITIES.jump,
      mark: 0,
      mask: KIND_MASK,
      action: { kind: 'goto', priority: PRIORITIES.land },
    },
    ...lookups,
    // A jump must land on a rule. No packet has this mark: gateway number 0 is nobody's.
    {
      family,
      priority: PRIORITIES.land,
      mark: SLOT_KIND,
      mask: GATEWAY_MASK,
      action: { kind: 'lookup', table: gatewayTable(0) },
    },
  ];
};

const routesOf = (settings: NodeSettings, table: number, to: TunnelEnd): RouteDesired[] =>
  familiesIn(settings).flatMap((family) => {
    const via = ofPair(to, family);
    return via === undefined ? [] : [{ table, via, device: settings.device }];
  });

const neighboursOf = ({ settings, peers }: NetworkFacts): NeighbourDesired[] =>
  peers.flatMap((peer) =>
    familiesIn(settings).flatMap((family) => {
      const ip = ofPair(peer, family);
      return ip === undefined ? [] : [{ device: settings.device, ip, mac: peer.mac }];
    }),
  );

const forwardingsOf = ({ settings, peers }: NetworkFacts): ForwardingDesired[] =>
  peers
    .flatMap(({ mac, parent }) => {
      const to = underlayOf(parent);
      return to === undefined ? [] : [{ device: settings.device, mac, to }];
    })
    .toSorted((a, b) => compareText(a.mac, b.mac));
