/** Heartbeat starts the thread in which the ownership protocol runs, and is the agent's end of the channel to it. */
import { Worker } from 'node:worker_threads';
import type { Input } from '../../core/ownership/port.ts';
import type { Told } from './driver.ts';
import type { FromThread, ThreadData, ToThread } from './thread.ts';

export interface HeartbeatHooks {
  /** The protocol says what to do. */
  told(told: Told): void;
  /** The thread has ended by a fault of ours or because its address cannot be bound; what the kernel holds stays. */
  failed(error: Error): void;
}

export class Heartbeat {
  readonly #worker: Worker;
  readonly #listening = Promise.withResolvers<void>();

  constructor(data: ThreadData, hooks: HeartbeatHooks) {
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData: data, name: 'heartbeat' });
    this.#worker.on('message', (told: FromThread) => {
      if (told.kind === 'listening') this.#listening.resolve();
      else hooks.told(told);
    });
    this.#worker.on('error', (error: Error) => {
      this.#listening.reject(error);
      hooks.failed(error);
    });
    // Whoever waits for the socket sees it; nobody has to.
    this.#listening.promise.catch(() => {});
  }

  /** Resolves when the socket is open; rejects if it cannot be opened. */
  listening(): Promise<void> {
    return this.#listening.promise;
  }

  /** Something happened on the node, or the plan has changed. */
  take(input: Input): void {
    this.#post({ kind: 'input', input });
  }

  /** The tunnel addresses of all nodes. */
  setAddresses(addresses: ReadonlyMap<string, string>): void {
    this.#post({ kind: 'addresses', addresses });
  }

  /** Ends the thread. The kernel holds what it holds. May be called twice. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}
