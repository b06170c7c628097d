/**
 * The numbers that our packets, connections, routing tables and rules carry. They are the same on every node, and all of
 * them are here, because they must not meet those of other programs:
 *
 * - kube-proxy owns the bits 0x4000 and 0x8000 of the packet mark: none of our packet marks has one of them.
 * - Calico takes the upper 16 bits by default, Cilium 0x0f00: on a packet that is ours we set the whole mark, and we look
 *   only at packets of pods under a policy and at our tunnel.
 *
 * The top byte of a mark says what it is. 0x26 comes from the marks of EgressTunnels, which existing clusters know.
 */

/** The bits of a mark that say what it is. */
export const KIND_MASK = 0xff000000;
/** Connection mark of a class, between two lookups: 0x25CCCCCC. */
export const CLASS_KIND = 0x25000000;
/** Connection mark of a slot: 0x2600SSSS. Packet mark to gateway number GG: 0x26GGSSSS. */
export const SLOT_KIND = 0x26000000;
/** Packet and connection mark of a reply that goes back to the node it came from: 0x27HH00LL. */
export const REPLY_KIND = 0x27000000;
/** Packet mark of what leaves here: 0x2800SSSS. */
export const SNAT_KIND = 0x28000000;
/**
 * Packet mark inside the tunnel device: 0x1200SSSS. It differs from the mark that routed the packet there: the route of
 * the outer packet is looked up with this mark, and would lead into the tunnel again.
 */
export const TUNNELLED_KIND = 0x12000000;
/** The bits of a mark that are the slot. */
export const SLOT_MASK = 0x3fff;

/**
 * Verdict of a destination that is nobody's, and connection mark of what takes its ordinary way although its source is
 * under a policy: it was judged. Without a mark it was not, and the seal of the table does not let it out.
 */
export const LEAVE_ALONE = 0x24000000;
/** Verdict of a destination that nothing serves: slot 0, which no binding has, so it is never forwarded. */
export const DROP = SLOT_KIND;

/** How many gateway nodes a node can send to; number 0 is left out, because a mark with it is a connection mark. */
export const GATEWAY_NUMBERS = 255;
/** How many classes there can be; number 0 is left out. */
export const CLASSES = 0xffffff;

/** The connection mark of a class. */
export const classMark = (number: number): number => CLASS_KIND + number;
/** The connection mark of a slot, and the verdict that sends traffic there. */
export const slotMark = (slot: number): number => SLOT_KIND + slot;
/** The packet mark that sends a slot to a gateway node. */
export const gatewayMark = (gateway: number, slot: number): number => SLOT_KIND + gateway * 0x10000 + slot;
/** The packet mark of a slot that leaves on this node. */
export const snatMark = (slot: number): number => SNAT_KIND + slot;
/** True for the packet mark of a slot that leaves on this node. */
export const isSnatMark = (mark: number): boolean => (mark & KIND_MASK) >>> 0 === SNAT_KIND;
/**
 * The mark of replies to a node, from the 16 bits that tell tunnel marks apart. The two bytes are set apart so that they
 * do not touch the bits by which kube-proxy accepts, masquerades and drops.
 */
export const replyMark = (bits: number): number => REPLY_KIND + (bits >>> 8) * 0x10000 + (bits & 0xff);

/** A mark as nft prints it. */
export const markText = (mark: number): string => `0x${mark.toString(16).padStart(8, '0')}`;

/**
 * Routing tables: 2601 to 2855 lead to gateway nodes, 2700001 and up back to workers, so that `ip rule` reads well. The
 * kernel files tables by their lowest byte (net/ipv4/fib_frontend.c, 6.18), and both rows spread over all of them. Other
 * programs use small numbers (Calico 1 to 250, Cilium 2004) or 51820 (WireGuard).
 */
export const gatewayTable = (gateway: number): number => 2600 + gateway;
/** The table that leads back to a node, from the 16 bits that tell tunnel marks apart. */
export const replyTable = (bits: number): number => 2_700_000 + bits;

/** True for a routing table of ours. */
export const isOurTable = (table: number): boolean =>
  (table >= gatewayTable(0) && table <= gatewayTable(GATEWAY_NUMBERS)) ||
  (table >= replyTable(0) && table <= replyTable(0xffff));

/**
 * Priorities of our rules. They come before the rules for pods and marks that other programs have (Calico 99, Cilium 100
 * and up, cloud CNIs 512 and up), and after those that Cilium needs first (9 and 10). The first one is a jump over the
 * others for packets that are not ours, the last one is where it lands.
 */
export const PRIORITIES = { jump: 93, lookup: 94, land: 95 } as const;

/** The bits of a packet mark that choose a gateway node. */
export const GATEWAY_MASK = 0xffff0000;
/** All bits: reply marks are matched whole. */
export const WHOLE_MASK = 0xffffffff;
/** From how many rules on the jump pays: ten rules cost nothing, a thousand 12 microseconds for each packet of the node. */
export const JUMP_FROM = 32;
