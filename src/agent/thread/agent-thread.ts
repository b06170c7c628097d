/** AgentThread starts a thread with a socket of its own, and is the agent's end of the channel to it. */
import { type Transferable, Worker } from 'node:worker_threads';

/** What every such thread tells once: its socket is open. */
export interface Listening {
  readonly kind: 'listening';
}

/** Where the code of a thread is. */
export interface ThreadPlace {
  readonly name: string;
  /** The module that starts it, by `import.meta.url`; the thread is `thread.ts` beside it. */
  readonly startedBy: string;
  /** In the image all sources are one file each program, and the thread lies beside them (tools/bundle.ts). */
  readonly inImage: string;
}

export interface ThreadHooks<Told> {
  /** What the thread tells, but for its start. */
  told(message: Told): void;
  /** The thread has ended by a fault of ours or because its address cannot be bound. */
  failed(error: Error): void;
}

/**
 * Most of what such a thread makes is short-lived. A small space for it keeps the memory small, and is collected often and
 * quickly: no collection may take as long as a heartbeat.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 4 };

export class AgentThread<To, Told extends { readonly kind: string }> {
  readonly #worker: Worker;
  readonly #listening = Promise.withResolvers<void>();

  constructor({ name, startedBy, inImage }: ThreadPlace, workerData: unknown, hooks: ThreadHooks<Told>) {
    const url = new URL(startedBy.endsWith('.ts') ? './thread.ts' : inImage, startedBy);
    this.#worker = new Worker(url, { workerData, name, resourceLimits });
    this.#worker.on('message', (message: Listening | Told) => {
      if (isListening(message)) this.#listening.resolve();
      else hooks.told(message);
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

  /** Tells the thread something; what is transferred belongs to the thread from then on. */
  post(message: To, transferred: readonly Transferable[] = []): void {
    this.#worker.postMessage(message, transferred);
  }

  /** Ends the thread. May be called twice. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

const isListening = (message: { readonly kind: string }): message is Listening => message.kind === 'listening';
