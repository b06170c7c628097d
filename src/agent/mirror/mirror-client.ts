/** MirrorClient asks the thread of the mirror for connections: the end of its channel in the thread of heartbeats. */
import type { MessagePort } from 'node:worker_threads';
import type { Ip } from '../../core/ip/index.ts';
import type { Taken, TakeRequest } from './thread.ts';

export class MirrorClient {
  readonly #port: MessagePort;
  readonly #resolveById = new Map<number, () => void>();
  #id = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', ({ id }: Taken) => {
      this.#resolveById.get(id)?.();
      this.#resolveById.delete(id);
    });
    port.unref();
  }

  /**
   * Resolves when the connections of EIPs that this node takes over are made in its kernel; `waitMs` is how long to wait until
   * their owner has told all of them, zero when it is gone. Without an answer it never resolves: whoever asks has a limit.
   */
  takeOver(ips: readonly Ip[], waitMs: number): Promise<void> {
    this.#id += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolveById.set(this.#id, resolve);
    this.#port.postMessage({ kind: 'take', id: this.#id, ips, waitMs } satisfies TakeRequest);
    return promise;
  }

  /** Asks nothing more. */
  close(): void {
    this.#port.close();
  }
}
