/**
 * The table `inet sallyport`: which packet meets which rule. The chains are the same on every node and follow from
 * TableSettings alone; pods, policies, EIPs and nodes are elements. README.md draws the way of a packet.
 *
 * On the worker
 *   1. `arrive`, after kube-proxy has chosen the real destination. A new connection of a source that a policy knows is
 *      classified: source -> class -> destination -> slot, kept as the connection mark. Every later packet is one lookup:
 *      slot -> packet mark, which routes it to the gateway node (or says that this node is the one).
 *   2. `leave`: the source is translated to itself. That is a binding, so no other program masquerades the packet.
 *   3. `depart` -> `into_tunnel`: the mark is rewritten, because the outer packet is routed by it too and would loop; its
 *      low bits are the slot and travel in the tunnel header.
 * On the gateway node
 *   4. `raw_in`: tunnel packets only from addresses of nodes, by the interface that carries the tunnel.
 *   5. `arrive` -> `from_tunnel`: slot from the tunnel header, and the worker it came from as the connection mark.
 *   6. `leave` -> `snat_eip`: slot -> EIP. No EIP: drop.
 *   7. `depart` -> `sent` counts, and drops what did not get an address of ours. Replies meet `arrive` -> `replies`, which
 *      counts them and gives the mark that routes them back.
 *
 * Whatever cannot get its EIP is dropped and counted by reason, never sent with another address. Nothing is accepted in
 * forward, so network policies of others still apply.
 */
import type { TableSettings } from '../../core/node/desired.ts';
import {
  DROP,
  KIND_MASK,
  LEAVE_ALONE,
  markText,
  REPLY_KIND,
  SLOT_KIND,
  SLOT_MASK,
  SNAT_KIND,
  TUNNELLED_KIND,
} from '../../core/node/numbers.ts';
import { type DropReason, dropReasons, OWNED } from './stored.ts';

/** A chain: with `hook` the kernel calls it, else a rule does. */
export interface Chain {
  readonly name: string;
  readonly hook?: string;
  readonly rules: readonly string[];
}

// 0x26 and 0x27: connections of a slot here, and those that came through the tunnel. They differ in the lowest bit only.
const IS_OURS = `ct mark and ${markText(0xfe000000)} == ${markText(SLOT_KIND)}`;
const IS_TUNNEL_BOUND = `meta mark and ${markText(0xfe000000)} == ${markText(SLOT_KIND)}`;
const kindOf = (what: string, kind: number): string => `${what} and ${markText(KIND_MASK)} == ${markText(kind)}`;
const slotAs = (kind: number): string => `meta mark set meta mark and ${markText(SLOT_MASK)} or ${markText(kind)}`;
/** The first segment of each side, which names the size of those to come. */
const CLAMP = 'tcp flags & (syn | rst) == syn jump clamp';
const drop = (reason: DropReason): string => `meta mark set ${markText(dropReasons[reason])} goto dropped`;
const ALONE = markText(LEAVE_ALONE);
/** What leaves here under slot 0, which nothing has. */
const NO_SLOT = markText(SNAT_KIND);
/** What came through the tunnel and is an answer: nodes send answers with slot 0. */
const IS_ANSWER = `meta mark and ${markText(SLOT_MASK)} == 0`;
/** To the node itself, such as a DNS server on it, and what is not routed at all. */
const NOT_ROUTED = 'fib daddr type { local, broadcast, anycast, multicast }';

/**
 * An EIP that lies ready on several nodes leaves only from the one that owns it now. Addresses of nodes, which are no
 * EIPs, are not asked about.
 */
const gate: readonly string[] = [
  `ip saddr @${OWNED.ipv4} ip saddr @sent4 return`,
  `ip6 saddr @${OWNED.ipv6} ip6 saddr @sent6 return`,
  `ip saddr @eips4 ${drop('not_owned')}`,
  `ip6 saddr @eips6 ${drop('not_owned')}`,
];

/** What no policy knows may be a pod that nobody has told us about yet: then it stays within the cluster. */
const strictStart: Chain = {
  name: 'strict_start',
  rules: [
    'ip saddr @known4 goto eip_guard',
    'ip6 saddr @known6 goto eip_guard',
    'ip saddr != @range4 goto eip_guard',
    'ip6 saddr != @range6 goto eip_guard',
    `${NOT_ROUTED} goto eip_guard`,
    'ip daddr @cluster4 return',
    'ip6 daddr @cluster6 return',
    drop('unclassified'),
  ],
};

/** The chains, base chains in the order in which a packet meets them. */
export const chainsFor = ({ device, parent, port, mss, isGated, isStrict }: TableSettings): readonly Chain[] => [
  {
    name: 'raw_in',
    hook: 'type filter hook prerouting priority raw',
    // The protocol is asked about in there: nearly no other packet has this port, and each would pay for the question.
    rules: [`th dport ${port} goto tunnel_guard`],
  },
  {
    // A pod could otherwise send a slot of its choice to a gateway node: with the address of a node that it takes itself, or
    // that the network plugin gives it on the way. Outer packets need no connection entry.
    name: 'tunnel_guard',
    rules: [
      'meta l4proto != udp return',
      ...(parent === undefined
        ? []
        : [
            `iifname "${parent}" ip saddr @vteps4 notrack return`,
            `iifname "${parent}" ip6 saddr @vteps6 notrack return`,
          ]),
      'goto foreign_tunnel',
    ],
  },
  {
    // To the tunnel of a node and not from one. The same port of another machine is nobody's business here. Asking the routing
    // table costs more than the sets, so only packets that are to be dropped pay for it.
    name: 'foreign_tunnel',
    rules: [
      'meta l4proto != udp return',
      `ip daddr @vteps4 ${drop('foreign_tunnel')}`,
      `ip6 daddr @vteps6 ${drop('foreign_tunnel')}`,
      `fib daddr type local ${drop('foreign_tunnel')}`,
    ],
  },
  {
    name: 'raw_out',
    hook: 'type filter hook output priority raw',
    // Nothing but the tunnel device sends packets with this mark.
    rules: [`${kindOf('meta mark', TUNNELLED_KIND)} notrack`],
  },
  {
    // A connection keeps the translation that it got: one that has an EIP of this node leaves here, also in the moment in which its
    // slot leaves through another node already, and the gate says whether it may. The third rule is `known` and `forward_slot`
    // for nearly every packet of a policy: each chain on its way costs it more than a rule. A bystander pays for five rules; only
    // its first packet is looked up.
    name: 'arrive',
    hook: 'type filter hook prerouting priority dstnat + 10',
    rules: [
      `iifname "${device}" goto from_tunnel`,
      `ct status snat ct direction original ${kindOf('ct mark', SLOT_KIND)} goto translated`,
      `${kindOf('ct mark', SLOT_KIND)} ct direction original meta mark set ct mark map @slot_fwd return`,
      `${IS_OURS} goto known`,
      'ct state vmap { established : return, related : return, new : goto classify, untracked : goto untracked, invalid : goto stateless }',
    ],
  },
  {
    name: 'translated',
    // A slot that is gone leaves nowhere.
    rules: [
      `meta mark set ct mark map @slot_fwd meta mark set ct mark and ${markText(SLOT_MASK)} or ${markText(SNAT_KIND)} return`,
      'goto forward_slot',
    ],
  },
  {
    name: 'from_tunnel',
    // A packet without a connection has no direction. An answer of a connection that is translated here by now looks like one, or like
    // the first packet of another connection; under slot 0 it gets no EIP and is dropped, but while the EIP moves the pod
    // gets a copy (src/dataplane/gate/moves.ts).
    rules: [
      'ct direction original goto from_worker',
      'ct direction reply goto to_pod',
      `${IS_ANSWER} ip daddr @pod4 meta mark set ${NO_SLOT} return`,
      `${IS_ANSWER} ip6 daddr @pod6 meta mark set ${NO_SLOT} return`,
      drop('tunnel_stateless'),
    ],
  },
  {
    name: 'from_worker',
    rules: [
      'ct state new jump from_worker_new',
      slotAs(SNAT_KIND),
      CLAMP,
      'ct mark 0 ct mark set ether saddr map @vtep_node',
    ],
  },
  {
    // The sender must be the tunnel of a node. And the gateway node is a way out and no destination: its services are not to
    // be had at its EIPs, also not by a connection whose first packet came before the EIP did and was never answered.
    name: 'from_worker_new',
    rules: [`ether saddr != @vtep_node ${drop('foreign_tunnel')}`, 'goto eip_guard'],
  },
  {
    // The answer of the server leaves by the device of the pod, whose route knows no tunnel.
    name: 'to_pod',
    rules: [CLAMP, 'meta mark set 0'],
  },
  {
    name: 'known',
    rules: ['ct direction original goto forward_slot', 'goto replies'],
  },
  {
    // The connection remembers the EIP as the destination of its replies, also after the address was translated back.
    name: 'replies',
    rules: [
      `${kindOf('ct mark', REPLY_KIND)} meta mark set ct mark`,
      'ct reply ip daddr @received4',
      'ct reply ip6 daddr @received6',
    ],
  },
  {
    name: 'classify',
    rules: [
      // A Service may lead to the tunnel of a node, which is known only now.
      `th dport ${port} jump foreign_tunnel`,
      // Known pods come before ranges.
      'ct mark set ip saddr map @pod4 goto by_destination',
      'ct mark set ip6 saddr map @pod6 goto by_destination',
      'ct mark set ip saddr map @net4 goto by_destination',
      'ct mark set ip6 saddr map @net6 goto by_destination',
      isStrict ? 'goto strict_start' : 'goto eip_guard',
    ],
  },
  {
    // What stays on this node is named, not what leaves it: an IPv6 destination may have no route but that into the tunnel.
    // Destinations that a policy names come before the ranges of the cluster, and the default of the class comes last.
    name: 'by_destination',
    rules: [
      `${NOT_ROUTED} ct mark set ${ALONE} goto eip_guard`,
      'ct mark set ct mark . ip daddr map @dst4 goto forward_slot',
      'ct mark set ct mark . ip6 daddr map @dst6 goto forward_slot',
      `ip daddr @cluster4 ct mark set ${ALONE} return`,
      `ip6 daddr @cluster6 ct mark set ${ALONE} return`,
      'meta nfproto ipv4 ct mark set ct mark map @dflt4 goto forward_slot',
      'meta nfproto ipv6 ct mark set ct mark map @dflt6 goto forward_slot',
      `ct mark set ${ALONE}`,
    ],
  },
  {
    // The verdict may be to leave the connection alone. A reply mark in the original direction is a
    // connection that once came through the tunnel and now comes by another way, or one of a pod of this node that another
    // node had: its translation is settled, so it goes on, if the EIP may leave here.
    name: 'forward_slot',
    rules: [
      'meta mark set ct mark map @slot_fwd return',
      `ct mark ${ALONE} return`,
      `${kindOf('ct mark', REPLY_KIND)} meta mark set ${markText(SNAT_KIND)} return`,
      // Open, and of no slot: the agent has cut it (src/dataplane/conntrack/cut.ts), and the pod is to know at once.
      `ct mark ${markText(DROP)} ct state established meta l4proto tcp reject with tcp reset`,
      `ct mark ${markText(DROP)} ${drop('unavailable')}`,
      drop('unknown_slot'),
    ],
  },
  ...(isStrict ? [strictStart] : []),
  {
    // The tunnel's own packets come first: a gateway node gets one for every packet of a worker.
    name: 'untracked',
    rules: [
      'ip saddr @vteps4 return',
      'ip6 saddr @vteps6 return',
      // Neighbour discovery is part of no connection by design.
      'meta l4proto ipv6-icmp return',
      'goto stateless',
    ],
  },
  {
    // Packets without a connection are never translated.
    name: 'stateless',
    rules: [
      'ip saddr @pod4 goto stateless_pod',
      'ip6 saddr @pod6 goto stateless_pod',
      'ip saddr @net4 goto stateless_pod',
      'ip6 saddr @net6 goto stateless_pod',
      isStrict ? 'goto strict_start' : 'goto eip_guard',
    ],
  },
  {
    name: 'stateless_pod',
    rules: [
      `${NOT_ROUTED} goto eip_guard`,
      'ip daddr @cluster4 return',
      'ip6 daddr @cluster6 return',
      drop('pod_stateless'),
    ],
  },
  {
    // Both ends of the tunnel clamp both directions, as their tunnels may differ in size: what goes in, and what comes out.
    name: 'clamp',
    rules: [
      `meta nfproto ipv4 tcp option maxseg size set ${mss.ipv4} return`,
      `meta nfproto ipv6 tcp option maxseg size set ${mss.ipv6}`,
    ],
  },
  {
    // Without it, a node that has just got an EIP answers packets of connections that it does not know yet with a reset.
    // Not in the hook of what is for the node itself: there each packet of the tunnel would pay for it.
    name: 'eip_guard',
    rules: ['ip daddr @eips4 goto eip_input', 'ip6 daddr @eips6 goto eip_input'],
  },
  {
    name: 'eip_input',
    rules: [
      'icmp type echo-request limit rate 10/second return',
      'icmpv6 type echo-request limit rate 10/second return',
      'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } return',
      drop('eip_input'),
    ],
  },
  {
    // Errors that this node makes about a packet of a connection, such as "too big", belong to the connection: those of
    // the gateway node go back to the worker that the packet came from, those of the worker leave with the EIP.
    name: 'own_errors',
    hook: 'type route hook output priority mangle',
    rules: [
      `ct direction reply ${kindOf('ct mark', REPLY_KIND)} meta mark set ct mark`,
      `ct direction original ${kindOf('ct mark', SLOT_KIND)} goto forward_slot`,
    ],
  },
  {
    // Before every other NAT: the first chain that makes a binding decides, and a verdict does not stop the next one.
    name: 'leave',
    hook: 'type nat hook postrouting priority srcnat - 10',
    rules: [
      `${kindOf('meta mark', SNAT_KIND)} goto snat_eip`,
      `oifname "${device}" ${IS_TUNNEL_BOUND} goto keep_source`,
    ],
  },
  {
    name: 'snat_eip',
    rules: [
      'meta nfproto ipv4 snat ip to meta mark map @slot_eip4',
      'meta nfproto ipv6 snat ip6 to meta mark map @slot_eip6',
      drop('no_eip'),
    ],
  },
  {
    name: 'keep_source',
    rules: ['snat ip to ip saddr', 'snat ip6 to ip6 saddr'],
  },
  {
    // One chain for all that is done last, after every NAT: each chain of a hook costs every packet.
    name: 'depart',
    hook: 'type filter hook postrouting priority srcnat + 10',
    rules: [`${IS_TUNNEL_BOUND} goto into_tunnel`, `${kindOf('meta mark', SNAT_KIND)} goto sent`],
  },
  {
    // Somebody may have taken a rule, a route or the device away. A reply to a pod of this node needs none of them. One to a pod of
    // another node must not go past the tunnel: if that node has just forgotten the connection, because its EIP has moved, it would
    // take the reply for the first packet of another one, and the pod's packets, as answers to it, would leave as they are.
    name: 'into_tunnel',
    rules: [
      CLAMP,
      `oifname "${device}" ${kindOf('meta mark', REPLY_KIND)} meta mark set ${markText(TUNNELLED_KIND)} return`,
      `oifname "${device}" ${slotAs(TUNNELLED_KIND)} return`,
      `${kindOf('meta mark', SLOT_KIND)} ${drop('astray')}`,
      'ip daddr @pod4 return',
      'ip6 daddr @pod6 return',
      drop('astray'),
    ],
  },
  {
    // The lookup itself counts, in the element that it finds. A connection keeps the translation that its first packet got:
    // one that was made while its slot left through another node still has the address of its pod.
    name: 'sent',
    rules: [...(isGated ? gate : []), 'ip saddr @sent4 return', 'ip6 saddr @sent6 return', drop('foreign_source')],
  },
  {
    // Two rules, so that a packet is dropped even if somebody deleted the element that counts it.
    name: 'dropped',
    rules: ['meta mark @drops', 'drop'],
  },
];
