/** Desired networks for tests, in the shape that core gives them. */
import { parseIpv6 } from '../../../core/ip/index.ts';
import type { NetworkDesired, RuleDesired } from '../../../core/node/desired.ts';
import {
  GATEWAY_MASK,
  gatewayMark,
  gatewayTable,
  KIND_MASK,
  PRIORITIES,
  replyMark,
  replyTable,
  SLOT_KIND,
  WHOLE_MASK,
} from '../../../core/node/numbers.ts';
import { ip } from '../../../core/testing/address.ts';
import type { DeviceNames } from '../owned.ts';
import { usualNames } from './fake-network.ts';

/** What a test says about the network that it wants; everything has a usual value. */
export interface NetworkWish {
  readonly names?: DeviceNames;
  readonly parent?: string;
  readonly port?: number;
  readonly mtu?: number;
  /** The last byte of the address of this node. */
  readonly host?: number;
  /** The last byte of the tunnel addresses and of the MAC address of this node. */
  readonly self?: number;
  /** Nodes that this one sends to, by the last byte of their addresses. */
  readonly gateways?: readonly number[];
  /** Nodes that replies go back to. */
  readonly workers?: readonly number[];
  /** EIPs by their last byte. */
  readonly eips?: readonly number[];
  /** Whether packets that are not ours jump over our rules. */
  readonly hasJump?: boolean;
}

const ipv6 = (text: string) => {
  const parsed = parseIpv6(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};

/** The MAC address of a node. */
export const macOf = (node: number): string => `66:00:00:00:00:${node.toString(16).padStart(2, '0')}`;

/** A whole desired network. */
export const networkDesired = (wish: NetworkWish = {}): NetworkDesired => {
  const { names = usualNames, parent = 'eth0', port = 7789, mtu = 1450, host = 11, self = host } = wish;
  const { gateways = [12, 13], workers = [], eips = [], hasJump = false } = wish;
  const { tunnel, holder } = names;
  const peers = [...new Set([...gateways, ...workers])].toSorted((a, b) => a - b);
  const ways = [
    ...gateways.map((to) => ({ to, mark: gatewayMark(to, 0), mask: GATEWAY_MASK, table: gatewayTable(to) })),
    ...workers.map((to) => ({ to, mark: replyMark(to), mask: WHOLE_MASK, table: replyTable(to) })),
  ];
  return {
    links: [
      {
        kind: 'vxlan',
        name: tunnel,
        id: 100,
        port,
        parent,
        local: ip(`10.6.0.${host}`),
        mac: macOf(self),
        mtu,
        hasChecksums: true,
        hasGro: false,
      },
      ...(eips.length === 0 ? [] : [{ kind: 'holder', name: holder } as const]),
    ],
    addresses: [
      { device: tunnel, ip: ip(`172.31.0.${self}`), prefixLength: 32 },
      { device: tunnel, ip: ip(`fd11::${self}`), prefixLength: 128 },
      ...eips.flatMap((eip) => [
        { device: holder, ip: ip(`10.6.0.${eip}`), prefixLength: 32 },
        { device: holder, ip: ip(`fd06::${eip}`), prefixLength: 128 },
      ]),
    ],
    rules: ([4, 6] as const).flatMap((family): RuleDesired[] => [
      ...(hasJump ? [jump(family), landing(family)] : []),
      ...ways.map(
        ({ mark, mask, table }): RuleDesired => ({
          family,
          priority: PRIORITIES.lookup,
          mark,
          mask,
          action: { kind: 'lookup', table },
        }),
      ),
    ]),
    routes: ways.flatMap(({ to, table }) => [
      { table, via: ip(`172.31.0.${to}`), device: tunnel },
      { table, via: ip(`fd11::${to}`), device: tunnel },
    ]),
    neighbours: peers.flatMap((to) => [
      { device: tunnel, ip: ip(`172.31.0.${to}`), mac: macOf(to) },
      { device: tunnel, ip: ip(`fd11::${to}`), mac: macOf(to) },
    ]),
    forwardings: peers.map((to) => ({ device: tunnel, mac: macOf(to), to: ip(`10.6.0.${to}`) })),
    proxies: eips.map((eip) => ({ device: 'eth0', ip: ipv6(`fd06::${eip}`) })),
  };
};

const jump = (family: 4 | 6): RuleDesired => ({
  family,
  priority: PRIORITIES.jump,
  mark: 0,
  mask: KIND_MASK,
  action: { kind: 'goto', priority: PRIORITIES.land },
});

const landing = (family: 4 | 6): RuleDesired => ({
  family,
  priority: PRIORITIES.land,
  mark: SLOT_KIND,
  mask: GATEWAY_MASK,
  action: { kind: 'lookup', table: gatewayTable(0) },
});

/** A network with something of every kind. */
export const everything: NetworkDesired = networkDesired({
  gateways: [12, 13],
  workers: [12, 14],
  eips: [100, 101],
  hasJump: true,
});
