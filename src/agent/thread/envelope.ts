/**
 * Envelope makes packets of bytes and bytes of packets. What it lets through was made by an agent of this cluster, for this
 * node and this purpose, in the present run of the sender, and was not let through before. README.md has the layout and the
 * reasons.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { MessageWriter, Reader } from '../../core/ownership/wire.ts';
import { ReplayWindow } from './replay-window.ts';

export interface EnvelopeSettings {
  readonly node: string;
  /** The first byte of a packet: what is sealed for one purpose cannot be opened for another. */
  readonly version: number;
  /** At least one; each at least 32 bytes. The first seals, any of them opens. */
  readonly keys: readonly [Uint8Array, ...Uint8Array[]];
  /** A whole number below 2^48 that nobody can guess: for the run, and for each challenge. */
  readonly randomNumber: () => number;
}

/** What a packet was. */
export type Unwrapped =
  | { readonly kind: 'content'; readonly from: string; readonly incarnation: number; readonly content: Uint8Array }
  /** Nothing to read in it, but something to send back. */
  | { readonly kind: 'reply'; readonly to: string; readonly packet: Uint8Array }
  | { readonly kind: 'nothing'; readonly why: 'malformed' | 'forged' | 'replayed' | 'proof' };

const types = ['content', 'challenge', 'proof'] as const;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

interface SenderWindow {
  readonly incarnation: number;
  readonly window: ReplayWindow;
}

export class Envelope {
  readonly #settings: EnvelopeSettings;
  readonly #incarnation: number;
  readonly #senderByName = new Map<string, SenderWindow>();
  readonly #nonceByName = new Map<string, number>();
  #number = 0;

  constructor(settings: EnvelopeSettings) {
    if (settings.keys.some((key) => key.length < KEY_BYTES)) {
      throw new Error(`a key of ownership messages needs ${KEY_BYTES} bytes or more`);
    }
    this.#settings = settings;
    this.#incarnation = settings.randomNumber();
  }

  /** A packet for one receiver. */
  wrap(to: string, content: Uint8Array): Uint8Array {
    return this.#packet(to, 'content', content);
  }

  /** Reads a packet. Whoever calls it has checked that it came from the tunnel address of the sender that it names. */
  unwrap(packet: Uint8Array): Unwrapped {
    const body = packet.subarray(0, Math.max(0, packet.length - TAG_BYTES));
    const reader = new Reader(body);
    const version = reader.byte();
    const type = types[reader.byte()];
    const from = reader.name();
    const [incarnation, number] = [reader.number(), reader.number()];
    const { place } = reader;
    if (place === undefined || version !== this.#settings.version || type === undefined || from === '')
      return malformed;
    // A packet of our own that somebody sends back to us is sealed for another, and so is one of another cluster.
    const { node, keys } = this.#settings;
    if (!keys.some((key) => isEqual(tagOf(key, node, body), packet.subarray(body.length)))) return forged;
    const content = body.subarray(place);
    if (type === 'challenge') return { kind: 'reply', to: from, packet: this.#packet(from, 'proof', content) };
    if (type === 'proof') return this.#prove(from, incarnation, number, content);
    const sender = this.#senderByName.get(from);
    if (sender?.incarnation !== incarnation) return { kind: 'reply', to: from, packet: this.#challenge(from) };
    if (!sender.window.isNew(number)) return replayed;
    return { kind: 'content', from, incarnation, content };
  }

  /** Takes a run of a sender for the present one, if it has answered our challenge. */
  #prove(from: string, incarnation: number, number: number, content: Uint8Array): Unwrapped {
    const nonce = this.#nonceByName.get(from);
    if (nonce === undefined || !isEqual(new MessageWriter().number(nonce).bytes(), content)) return replayed;
    this.#nonceByName.delete(from);
    this.#senderByName.set(from, { incarnation, window: new ReplayWindow(number) });
    return { kind: 'nothing', why: 'proof' };
  }

  /** The same question until it is answered: heartbeats come faster than answers over a slow path. */
  #challenge(from: string): Uint8Array {
    const nonce = this.#nonceByName.get(from) ?? this.#settings.randomNumber();
    this.#nonceByName.set(from, nonce);
    return this.#packet(from, 'challenge', new MessageWriter().number(nonce).bytes());
  }

  #packet(to: string, type: (typeof types)[number], content: Uint8Array): Uint8Array {
    const { node, keys, version } = this.#settings;
    this.#number += 1;
    const writer = new MessageWriter().byte(version).byte(types.indexOf(type)).name(node);
    const head = writer.number(this.#incarnation).number(this.#number).bytes();
    const packet = new Uint8Array(head.length + content.length + TAG_BYTES);
    packet.set(head);
    packet.set(content, head.length);
    packet.set(tagOf(keys[0], to, packet.subarray(0, -TAG_BYTES)), packet.length - TAG_BYTES);
    return packet;
  }
}

const malformed: Unwrapped = { kind: 'nothing', why: 'malformed' };
const forged: Unwrapped = { kind: 'nothing', why: 'forged' };
const replayed: Unwrapped = { kind: 'nothing', why: 'replayed' };

/** Node names hold no zero byte, so no receiver and body look like another pair. */
const tagOf = (key: Uint8Array, to: string, body: Uint8Array): Uint8Array =>
  createHmac('sha256', key).update(`${to}\0`).update(body).digest().subarray(0, TAG_BYTES);

const isEqual = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
