/**
 * A packet on its way out, walked through the NodeDesired of all nodes as their kernels would: the rules of
 * src/dataplane/nft/ruleset.ts, the routing rules, the neighbours and the forwarding entries, read from texts and numbers
 * and from nothing else. It decides nothing. Not shipped.
 */

import { UNROUTED } from '../cluster/outside.ts';
import { contains, familyOf, type Ip, parseCidr, parseSet } from '../ip/index.ts';
import type { NodeDesired, TableElements } from '../node/desired.ts';
import { LEAVE_ALONE, PRIORITIES } from '../node/numbers.ts';

/** What became of a packet: it left a node with a source address, it was dropped, or no rule of ours changed it. */
export type Sent =
  | { readonly kind: 'left'; readonly node: string; readonly source: string; readonly slot: number }
  | { readonly kind: 'dropped'; readonly where: string }
  | { readonly kind: 'untouched' };

/** A packet, and the node that its sender is on. */
export interface Packet {
  readonly node: string;
  readonly from: Ip;
  readonly to: Ip;
  /** Whether the kernel of that node takes `to` for an address of its own. */
  readonly isLocal: boolean;
}

type Nodes = ReadonlyMap<string, NodeDesired>;

/** Sends a new connection's first packet. Throws where a kernel would do something that nobody can want. */
export const send = (nodes: Nodes, packet: Packet): Sent => {
  const worker = desiredOf(nodes, packet.node);
  const { elements } = worker.table;
  if (packet.isLocal || contains(UNROUTED, packet.to)) return { kind: 'untouched' };
  const verdict = classify(elements, packet);
  if (verdict === undefined || verdict === LEAVE_ALONE) return { kind: 'untouched' };
  const forwarded = elements.slot_fwd.get(hex(verdict));
  if (forwarded === undefined) return { kind: 'dropped', where: `slot_fwd of ${packet.node}` };
  const mark = Number(forwarded);
  const slot = mark & 0x3fff;
  if (mark >>> 24 === 0x28) return translate(worker, packet.node, packet, slot);
  const gateway = tunnelTo(nodes, packet.node, mark, packet);
  replyFrom(nodes, gateway, packet);
  return translate(desiredOf(nodes, gateway), gateway, packet, slot);
};

const hex = (mark: number): string => `0x${mark.toString(16).padStart(8, '0')}`;

const desiredOf = (nodes: Nodes, name: string): NodeDesired => {
  const desired = nodes.get(name);
  if (desired === undefined) throw new Error(`there is no node ${name}`);
  return desired;
};

/** The connection mark that a new connection gets; undefined when it gets none. */
const classify = (elements: TableElements, { from, to }: Packet): number | undefined => {
  const is4 = familyOf(from) === 4;
  const [pods, nets, ranges, cluster, defaults] = is4
    ? [elements.pod4, elements.net4, elements.dst4, elements.cluster4, elements.dflt4]
    : [elements.pod6, elements.net6, elements.dst6, elements.cluster6, elements.dflt6];
  const found = pods.get(from) ?? onlyMatch(nets, '', from);
  if (found === undefined) return undefined;
  const explicit = onlyMatch(ranges, `${found} . `, to);
  if (explicit !== undefined) return Number(explicit);
  if (onlyMatch(cluster, '', to) !== undefined) return undefined;
  const otherwise = defaults.get(found);
  return otherwise === undefined ? undefined : Number(otherwise);
};

/** The value of the one range under a prefix that holds the address. The kernel refuses ranges that overlap. */
const onlyMatch = (elements: ReadonlyMap<string, string>, prefix: string, ip: Ip): string | undefined => {
  const found = [...elements].filter(([key]) => key.startsWith(prefix) && holds(key.slice(prefix.length), ip));
  if (found.length > 1) throw new Error(`${ip} is in ${found.map(([key]) => key).join(' and ')}`);
  return found[0]?.[1];
};

const holds = (range: string, ip: Ip): boolean => {
  const set = parseSet([range], parseCidr);
  if (!set.ok) throw new Error(set.message);
  return contains(set.value, ip);
};

/** Routes a marked packet through the tunnel and names the node that gets it. */
const tunnelTo = (nodes: Nodes, sender: string, mark: number, { to }: Packet): string => {
  const { network } = desiredOf(nodes, sender);
  const family = familyOf(to);
  const rules = network.rules.filter((rule) => rule.family === family).toSorted((a, b) => a.priority - b.priority);
  // Numbers of 32 bits would be negative after &, so marks are compared as bigints.
  const matching = rules.filter((rule) => (BigInt(mark) & BigInt(rule.mask)) === BigInt(rule.mark));
  const [rule] = matching;
  if (rule?.action.kind !== 'lookup' || rule.priority !== PRIORITIES.lookup || matching.length !== 1) {
    throw new Error(`mark ${hex(mark)} on ${sender} meets ${JSON.stringify(matching)}`);
  }
  const { table } = rule.action;
  const via = only(
    network.routes.filter((route) => route.table === table && familyOf(route.via) === family),
    `route in table ${table} of ${sender}`,
  ).via;
  const { mac } = only(
    network.neighbours.filter(({ ip }) => ip === via),
    `neighbour ${via} of ${sender}`,
  );
  const outer = only(
    network.forwardings.filter((entry) => entry.mac === mac),
    `forwarding of ${mac} on ${sender}`,
  );
  const [name, receiver] = only(
    [...nodes].filter(([, desired]) => tunnelLink(desired)?.local === outer.to),
    `node at ${outer.to}`,
  );
  if (tunnelLink(receiver)?.mac !== mac) throw new Error(`${name} does not have ${mac}`);
  const source = tunnelLink(desiredOf(nodes, sender))?.local ?? '';
  const vteps = receiver.table.elements[source.includes(':') ? 'vteps6' : 'vteps4'];
  if (!vteps.has(source)) throw new Error(`${name} takes no tunnel packets from ${source}`);
  return name;
};

/** Checks that replies get back to the worker. */
const replyFrom = (nodes: Nodes, gateway: string, packet: Packet): void => {
  const mac = tunnelLink(desiredOf(nodes, packet.node))?.mac ?? '';
  const mark = desiredOf(nodes, gateway).table.elements.vtep_node.get(mac);
  if (mark === undefined) throw new Error(`${gateway} does not know where ${mac} is`);
  const back = tunnelTo(nodes, gateway, Number(mark), packet);
  if (back !== packet.node) throw new Error(`replies of ${packet.node} go to ${back}`);
};

const tunnelLink = ({ network }: NodeDesired) => network.links.find((link) => link.kind === 'vxlan');

/** Gives the packet its source address, which must be one that the node answers for. */
const translate = ({ table, network, claims }: NodeDesired, node: string, { to }: Packet, slot: number): Sent => {
  const is4 = familyOf(to) === 4;
  const source = table.elements[is4 ? 'slot_eip4' : 'slot_eip6'].get(hex(0x28000000 + slot));
  if (source === undefined) return { kind: 'dropped', where: `slot_eip of ${node}` };
  const isEip = table.elements[is4 ? 'eips4' : 'eips6'].has(source);
  const isHeld = network.addresses.some(({ ip }) => ip === source) && claims.some(({ ip }) => ip === source);
  if (isEip !== isHeld) throw new Error(`${node} does not hold ${source}`);
  return { kind: 'left', node, source, slot };
};

const only = <T>(values: readonly T[], what: string): T => {
  const [value] = values;
  if (value === undefined || values.length > 1) throw new Error(`${values.length} times ${what}`);
  return value;
};
