/** HeartbeatSeal makes packets of ownership messages and messages of packets. What it lets through, Envelope says. */
import type { Message } from '../../core/ownership/message.ts';
import { decode, encode } from '../../core/ownership/wire.ts';
import { Envelope, type EnvelopeSettings, type Unwrapped } from '../thread/envelope.ts';

export type SealSettings = Omit<EnvelopeSettings, 'version'>;

/** What a packet was. */
export type Opened =
  | { readonly kind: 'message'; readonly from: string; readonly incarnation: number; readonly message: Message }
  | Exclude<Unwrapped, { readonly kind: 'content' }>;

const VERSION = 1;

export class HeartbeatSeal {
  readonly #envelope: Envelope;

  constructor(settings: SealSettings) {
    this.#envelope = new Envelope({ ...settings, version: VERSION });
  }

  /** A packet for one receiver. */
  seal(to: string, message: Message): Uint8Array {
    return this.#envelope.wrap(to, encode(message));
  }

  /** Reads a packet. Whoever calls it has checked that it came from the tunnel address of the sender that it names. */
  open(packet: Uint8Array): Opened {
    const unwrapped = this.#envelope.unwrap(packet);
    if (unwrapped.kind !== 'content') return unwrapped;
    const { from, incarnation, content } = unwrapped;
    const message = decode(content);
    return message === undefined
      ? { kind: 'nothing', why: 'malformed' }
      : { kind: 'message', from, incarnation, message };
  }
}
