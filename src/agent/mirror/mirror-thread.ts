/** MirrorThread starts the thread in which connections are mirrored, and is the agent's end of the channel to it. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { MirrorPlan, MirrorStats } from './port.ts';
import type { FromMirrorThread, MirrorThreadData, ToMirrorThread } from './thread.ts';

export interface MirrorHooks {
  /** How it stands, once a second while that changes. */
  stats(stats: MirrorStats): void;
  /** The kernel refuses something; it is tried again. */
  refused(why: string): void;
  /** The thread has ended by a fault of ours or because its address cannot be bound. */
  failed(error: Error): void;
}

/** In the image all sources are one file each program, and the thread lies beside them (tools/bundle.ts). */
const threadUrl = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : '../mirror-thread.js', import.meta.url);

/** Most of what the thread makes is short-lived: a small space for it keeps the memory small. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 };

export class MirrorThread {
  readonly #worker: Worker;
  readonly #listening = Promise.withResolvers<void>();

  constructor(data: MirrorThreadData, hooks: MirrorHooks) {
    this.#worker = new Worker(threadUrl, { workerData: data, name: 'mirror', resourceLimits });
    this.#worker.on('message', (told: FromMirrorThread) => {
      switch (told.kind) {
        case 'listening':
          this.#listening.resolve();
          break;
        case 'stats':
          hooks.stats(told.stats);
          break;
        case 'failed':
          hooks.refused(told.why);
          break;
        default:
          told satisfies never;
      }
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

  /** What this node owns and who follows it. Call it before the kernel lets go of an EIP: what it forgets then is told to nobody. */
  set(plan: MirrorPlan): void {
    this.#post({ kind: 'plan', plan });
  }

  /** A port for another thread, which makes an `Asker` of it and asks without the agent between. Transfer it. */
  port(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#worker.postMessage({ kind: 'asker', port: port1 } satisfies ToMirrorThread, [port1]);
    return port2;
  }

  /** Ends the thread. May be called twice. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(message: ToMirrorThread): void {
    this.#worker.postMessage(message);
  }
}
