/**
 * KernelView: what the kernel of one node holds about one source and one slot, as its agent serves it on
 * `/kernel?ip=ADDRESS&slot=NUMBER`. It is read from the kernel, not from what the agent wanted: the two are compared.
 */
import { contains, familyOf, type Ip, parseCidrMasking, parseSet } from '../ip/index.ts';
import type { TableElements } from './desired.ts';
import { DROP, gatewayMark, LEAVE_ALONE, markText, SLOT_MASK, slotMark, snatMark } from './numbers.ts';

/** The answer of an agent. Addresses are plain texts, as nft prints them. */
export interface KernelView {
  /** Name of the node. */
  readonly node: string;
  /** False when the kernel has no table of ours at all. */
  readonly hasTable: boolean;
  /** The source that was asked for; absent when none was, or when the kernel does not know it. */
  readonly source?: KernelSource | undefined;
  /** The slot that was asked for; absent when none was, or when the kernel does not know it. */
  readonly slot?: KernelSlot | undefined;
}

/** What happens to new connections of a source. */
export interface KernelSource {
  readonly ip: string;
  /** The class as a mark, `0x25000001`. */
  readonly class: string;
  /** Verdicts for destinations that policies name, in the order in which the kernel lists them. */
  readonly destinations: readonly { readonly range: string; readonly verdict: KernelVerdict }[];
  /** The verdict for every other destination outside the cluster. */
  readonly otherwise: KernelVerdict;
}

/** Sent to the gateway of a slot, dropped, or left to the node. */
export type KernelVerdict =
  | { readonly kind: 'slot'; readonly slot: number }
  | { readonly kind: 'drop' }
  | { readonly kind: 'leftAlone' };

/** Where packets of a slot go, and what becomes of them on a gateway node. */
export interface KernelSlot {
  readonly slot: number;
  /** The gateway node that packets of the slot are sent to; this node itself when they leave here. */
  readonly gateway?: string | undefined;
  /** The addresses that packets of the slot leave this node with, when they leave here. */
  readonly eip: { readonly ipv4?: string | undefined; readonly ipv6?: string | undefined };
}

/** What is asked of an agent. */
export interface KernelQuery {
  readonly ip: Ip | undefined;
  readonly slot: number | undefined;
}

/** Picks from the elements of a table what was asked for. `gatewayNumbers` says which number stands for which node. */
export const kernelViewOf = (
  node: string,
  elements: TableElements | undefined,
  gatewayNumbers: ReadonlyMap<string, number>,
  { ip, slot }: KernelQuery,
): KernelView =>
  elements === undefined
    ? { node, hasTable: false }
    : {
        node,
        hasTable: true,
        source: ip === undefined ? undefined : sourceOf(ip, elements),
        slot: slot === undefined ? undefined : slotOf(node, slot, elements, gatewayNumbers),
      };

const sourceOf = (ip: Ip, elements: TableElements): KernelSource | undefined => {
  const isV4 = familyOf(ip) === 4;
  const [pods, nets, destinations, defaults] = isV4
    ? [elements.pod4, elements.net4, elements.dst4, elements.dflt4]
    : [elements.pod6, elements.net6, elements.dst6, elements.dflt6];
  const mark = pods.get(ip) ?? [...nets].find(([range]) => holds(range, ip))?.[1];
  if (mark === undefined) return undefined;
  const prefix = `${mark} . `;
  return {
    ip,
    class: mark,
    destinations: [...destinations]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, value]) => ({ range: key.slice(prefix.length), verdict: verdictOf(value) })),
    otherwise: verdictOf(defaults.get(mark)),
  };
};

const slotOf = (
  node: string,
  slot: number,
  elements: TableElements,
  gatewayNumbers: ReadonlyMap<string, number>,
): KernelSlot | undefined => {
  const forward = elements.slot_fwd.get(markText(slotMark(slot)));
  const ipv4 = elements.slot_eip4.get(markText(snatMark(slot)));
  const ipv6 = elements.slot_eip6.get(markText(snatMark(slot)));
  if (forward === undefined && ipv4 === undefined && ipv6 === undefined) return undefined;
  const nodeByMark = new Map([...gatewayNumbers].map(([name, number]) => [markText(gatewayMark(number, slot)), name]));
  nodeByMark.set(markText(snatMark(slot)), node);
  const gateway = forward === undefined ? undefined : nodeByMark.get(forward);
  return { slot, gateway, eip: { ipv4, ipv6 } };
};

/** A class without a default leaves everything else to the node. */
const verdictOf = (value: string = markText(LEAVE_ALONE)): KernelVerdict => {
  if (value === markText(LEAVE_ALONE)) return { kind: 'leftAlone' };
  if (value === markText(DROP)) return { kind: 'drop' };
  return { kind: 'slot', slot: Number.parseInt(value, 16) & SLOT_MASK };
};

const holds = (range: string, ip: Ip): boolean => {
  const set = parseSet([range], parseCidrMasking);
  return set.ok && contains(set.value, ip);
};
