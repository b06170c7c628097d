/**
 * Inbox is what a successor knows about the connections of other nodes' EIPs, until it needs them or they are over. It takes
 * packets of a stream in order only: one that was overtaken is not taken any more, and its sender, who sees it in the answer,
 * tells anew how things stand. Pure: time comes in, answers come out.
 */
import type { AddressBytes, Connection, ConnectionKey } from '../../dataplane/conntrack/connection.ts';
import type { Batch, Carried, MirrorAck, MirrorRecord } from './message.ts';

/** What a node that was not heard for this long had told is forgotten: its EIPs have another owner or nobody. */
export const KEEP_MS = 600_000;

export interface InboxSettings {
  /** A number that tells this run from the one before. */
  readonly instance: number;
  /** Connections of all EIPs together. */
  readonly limit: number;
}

interface MirrorSender {
  readonly incarnation: number;
  readonly stream: number;
  highest: number;
  seen: number;
  heardAtMs: number;
}

/** A connection, and the packet that spoke of it last. */
interface MirroredConnection extends Carried {
  readonly sender: MirrorSender;
  readonly number: number;
  /** It is in the kernel. */
  isMade: boolean;
}

interface EipConnections {
  readonly connections: Map<ConnectionKey, MirroredConnection>;
  /** Who spoke of it last. */
  sender: MirrorSender;
  /** Who has told all of it, and is heard. */
  wholeBy: MirrorSender | undefined;
}

export class Inbox {
  readonly #settings: InboxSettings;
  readonly #senderByNode = new Map<string, MirrorSender>();
  readonly #pages = new Map<AddressBytes, EipConnections>();
  #size = 0;
  #dropped = 0;

  constructor(settings: InboxSettings) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#size;
  }

  /** Records that found no room. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether all connections of an EIP are known, but for the last changes. */
  isWhole(eip: AddressBytes): boolean {
    return this.#pages.get(eip)?.wholeBy !== undefined;
  }

  /**
   * Takes a packet; what to answer. `isOurs` says of an EIP that it is ours by now: nobody knows its connections better, and a packet
   * that speaks of one is neither taken nor answered.
   */
  take(
    from: { readonly node: string; readonly incarnation: number },
    batch: Batch,
    isOurs: (eip: AddressBytes) => boolean,
    nowMs: number,
  ): MirrorAck | undefined {
    const sender = this.#senderOf(from, batch);
    // A stream that has been replaced: nobody waits for an answer.
    if (sender === undefined) return undefined;
    sender.heardAtMs = nowMs;
    // A node that comes back takes itself for the owner for a moment. What it answered then would never be told to it again.
    if (batch.parts.some(({ eip }) => isOurs(eip))) return undefined;
    const ahead = batch.number - sender.highest;
    if (ahead > 0) {
      sender.seen = shifted(sender.seen, ahead);
      sender.highest = batch.number;
      for (const part of batch.parts) this.#apply(sender, batch.number, part);
    }
    const { stream, highest, seen } = sender;
    return { kind: 'ack', stream, instance: this.#settings.instance, highest, seen };
  }

  /** The connections of an EIP that were not asked for before: to be made in the kernel. Without those of a mark, which come later. */
  *unmade(eip: AddressBytes, without?: number): Generator<Connection> {
    for (const kept of this.#pages.get(eip)?.connections.values() ?? []) {
      if (kept.isMade || kept.mark === without) continue;
      kept.isMade = true;
      yield { key: kept.key, eip, eipPort: kept.port, mark: kept.mark };
    }
  }

  /** Whether there are such connections. */
  hasUnmade(eip: AddressBytes): boolean {
    const kept = this.#pages.get(eip)?.connections.values();
    return kept?.some(({ isMade }) => !isMade) ?? false;
  }

  forget(eip: AddressBytes): void {
    this.#size -= this.#pages.get(eip)?.connections.size ?? 0;
    this.#pages.delete(eip);
  }

  /** Forgets what nodes had told that were not heard for long. */
  expire(nowMs: number): void {
    for (const [eip, { sender }] of this.#pages) if (nowMs - sender.heardAtMs >= KEEP_MS) this.forget(eip);
    for (const [node, { heardAtMs }] of this.#senderByNode) {
      if (nowMs - heardAtMs >= KEEP_MS) this.#senderByNode.delete(node);
    }
  }

  #senderOf(
    from: { readonly node: string; readonly incarnation: number },
    { stream }: Batch,
  ): MirrorSender | undefined {
    const known = this.#senderByNode.get(from.node);
    if (known?.incarnation === from.incarnation && known.stream >= stream) {
      return known.stream === stream ? known : undefined;
    }
    const sender = { incarnation: from.incarnation, stream, highest: -Infinity, seen: 0, heardAtMs: 0 };
    this.#senderByNode.set(from.node, sender);
    return sender;
  }

  #apply(sender: MirrorSender, number: number, part: MirrorRecord): void {
    const page = this.#pageOf(part.eip, sender);
    page.sender = sender;
    switch (part.kind) {
      case 'open':
        for (const connection of part.connections) this.#keep(page, { ...connection, sender, number, isMade: false });
        break;
      case 'closed':
        for (const key of part.keys) if (page.connections.delete(key)) this.#size -= 1;
        break;
      case 'whole':
        for (const [key, kept] of page.connections) {
          if (kept.sender === sender && kept.number >= part.since) continue;
          page.connections.delete(key);
          this.#size -= 1;
        }
        page.wholeBy = sender;
    }
  }

  #keep({ connections }: EipConnections, kept: MirroredConnection): void {
    if (!connections.has(kept.key)) {
      if (this.#size >= this.#settings.limit) {
        this.#dropped += 1;
        return;
      }
      this.#size += 1;
    }
    connections.set(kept.key, kept);
  }

  #pageOf(eip: AddressBytes, sender: MirrorSender): EipConnections {
    const known = this.#pages.get(eip);
    if (known !== undefined) return known;
    const page: EipConnections = { connections: new Map(), sender, wholeBy: undefined };
    this.#pages.set(eip, page);
    return page;
  }
}

/** The bits of what was got, when the highest number has moved on; shifting by 32 would shift by nothing. */
const shifted = (seen: number, ahead: number): number => {
  if (ahead > 32) return 0;
  const before = ahead === 32 ? 0 : seen << ahead;
  return (before | (1 << (ahead - 1))) >>> 0;
};
