/**
 * While an EIP moves from one node to another by plan, both of them carry it, and an answer may come to the one while only
 * the other knows its connection: a question left through the old node, and its answer comes to the new one, because the
 * network has learned meanwhile. Each hands what it does not know to the other, through the tunnel. What came through the
 * tunnel goes no further, so that nothing goes in circles.
 *
 *   outside --answer--> new node, no such connection --copy, tunnel--> old node, translated back --tunnel--> worker
 *
 * A pod uses a port again a minute after it has closed it; a kernel remembers the old connection for two. The answer to the first
 * packet of the new one, when it comes to the node that remembers the old one, would be known there and go to the pod past the node
 * that waits for it, which then drops all that the pod says. So the other node gets a copy of such an answer.
 *
 * Only a chain of these families can copy a packet to a node that its routes do not name: the address is local to both. The tables
 * sleep but while something moves: each chain that is called costs every packet.
 */
import { type Ip, ipBytes, isIpv4, isIpv6 } from '../../core/ip/index.ts';
import { KIND_MASK, markText, REPLY_KIND, SNAT_KIND, TUNNELLED_KIND } from '../../core/node/numbers.ts';
import { TABLE } from '../nft/stored.ts';
import type { SetContent, TableState } from './set-batch.ts';

/** The other node of a move: its tunnel address of the same family, and for how long it is known at the most. */
export interface Other {
  readonly via: Ip;
  readonly forMs: number;
}

/** Both tables; those with our usual name never sleep. */
const MOVES = `${TABLE}_moves`;
export const movesTables = [
  { family: 'ip', table: MOVES },
  { family: 'ip6', table: MOVES },
] as const;

/** EIP -> tunnel address of the other node. */
const OTHERS = 'others';

const words = {
  ip: { type: 'ipv4_addr', own: 'icmp type echo-request' },
  ip6: { type: 'ipv6_addr', own: 'icmpv6 type { echo-request, nd-neighbor-solicit, nd-neighbor-advert }' },
} as const;

/**
 * The tables, asleep, so that they can be loaded over what is there. `share` comes when the connection is known and nothing translated
 * yet, so that the copy still has the EIP: an entry that has heard both sides before (assured) is an old one or has this
 * answer already, and then nobody minds the copy. `hand_over` comes when the address of an answer to a known connection
 * was translated back, so that what still has the EIP is unknown; and before `arrive` of the main table, which would drop
 * it. `pass_on` comes after `arrive`, which takes answers from the tunnel for those to pods of this node. Such a pod gets its answer also if it
 * belongs to no connection: the other node still, or already, translates it back, while this one has not, or has already, the
 * connection with the EIP (ADR 0046). A copy meets no chain of forward and is not translated.
 */
export const movesScript = (device: string): string =>
  movesTables
    .flatMap(({ family, table }) => {
      const { type, own } = words[family];
      const place = `${family} ${table}`;
      const copy = `meta mark set ${markText(TUNNELLED_KIND)} dup to ${family} daddr map @${OTHERS}`;
      return [
        `add table ${place} { flags dormant; }`,
        `add map ${place} ${OTHERS} { type ${type} : ${type}; flags timeout; }`,
        `add chain ${place} share { type filter hook prerouting priority mangle; policy accept; }`,
        `flush chain ${place} share`,
        `add rule ${place} share ${family} daddr != @${OTHERS} return`,
        `add rule ${place} share iifname "${device}" return`,
        `add rule ${place} share tcp flags & (syn | ack) == (syn | ack) ct status assured ${copy} meta mark set 0`,
        `add chain ${place} hand_over { type filter hook prerouting priority dstnat + 5; policy accept; }`,
        `flush chain ${place} hand_over`,
        `add rule ${place} hand_over ${family} daddr != @${OTHERS} return`,
        `add rule ${place} hand_over iifname "${device}" drop`,
        // Questions to the EIP itself are for its owner.
        `add rule ${place} hand_over ${own} return`,
        `add rule ${place} hand_over tcp flags & (syn | ack) == syn return`,
        `add rule ${place} hand_over ${copy}`,
        `add rule ${place} hand_over drop`,
        `add chain ${place} pass_on { type filter hook prerouting priority dstnat + 15; policy accept; }`,
        `flush chain ${place} pass_on`,
        `add rule ${place} pass_on iifname "${device}" ct direction reply ct mark and ${markText(KIND_MASK)} == ${markText(REPLY_KIND)} meta mark set ct mark`,
        // An answer to a pod of this node whose connection is translated here by now. The main table has marked it so, and would drop it.
        `add rule ${place} pass_on iifname "${device}" meta mark ${markText(SNAT_KIND)} meta mark set 0 dup to ${family} daddr drop`,
      ];
    })
    .concat('')
    .join('\n');

/** What the tables are to hold, and whether they sleep. */
export const movesIn = (
  held: readonly { readonly ip: Ip; readonly other?: Other }[],
): [readonly SetContent[], readonly TableState[]] => {
  const moving = held.flatMap(({ ip, other }) => (other === undefined ? [] : [{ ip, ...other }]));
  const elementsOf = (is: (ip: Ip) => boolean) =>
    moving
      .filter(({ ip }) => is(ip))
      .map(({ ip, via, forMs }) => ({ key: ipBytes(ip), value: ipBytes(via), timeoutMs: forMs }));
  return [
    [
      { family: 'ip', table: MOVES, set: OTHERS, elements: elementsOf(isIpv4) },
      { family: 'ip6', table: MOVES, set: OTHERS, elements: elementsOf(isIpv6) },
    ],
    movesTables.map((one) => ({ ...one, isDormant: moving.length === 0 })),
  ];
};
