/** Answers that are due: the packets of a burst are answered by one, because an answer speaks of the last 32 numbers. */
import type { Clock } from '../../runtime/process/clock.ts';
import type { MirrorAck } from './message.ts';

const WAIT_MS = 5;
/** So many packets are answered at once, long before one of them is out of sight. */
const PACKETS = 16;

export class Answers {
  readonly #clock: Clock;
  readonly #send: (node: string, ack: MirrorAck) => void;
  readonly #dueByNode = new Map<string, MirrorAck>();
  #packets = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, send: (node: string, ack: MirrorAck) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Answers a node soon; a later answer says what this one does. */
  add(node: string, ack: MirrorAck): void {
    this.#dueByNode.set(node, ack);
    this.#packets += 1;
    if (this.#packets >= PACKETS) this.#flush();
    else this.#cancel ??= this.#clock.after(WAIT_MS, () => this.#flush());
  }

  /** Answers nothing more. */
  close(): void {
    this.#cancel?.();
    this.#dueByNode.clear();
  }

  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#packets = 0;
    for (const [node, ack] of this.#dueByNode) this.#send(node, ack);
    this.#dueByNode.clear();
  }
}
