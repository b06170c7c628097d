/** Heartbeat starts the thread in which the ownership protocol runs, and is the agent's end of the channel to it. */
import { type MessagePort, Worker } from 'node:worker_threads';
import type { Input } from '../../core/ownership/port.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import type { ReadyEips } from './grip.ts';
import { machineMs } from './machine-clock.ts';
import type { FromThread, ThreadData, ToThread } from './thread.ts';
import type { UplinkPlace } from './uplink.ts';

/** What the thread tells, but for its start. */
export type Tidings = Exclude<FromThread, { readonly kind: 'listening' }>;

export interface HeartbeatHooks {
  /** What the protocol says, and what became of it. The kernel holds it already. */
  told(tidings: Tidings): void;
  /** The thread has ended by a fault of ours or because its address cannot be bound; what the kernel holds stays. */
  failed(error: Error): void;
}

/** In the image all sources are one file each program, and the thread lies beside them (tools/bundle.ts). */
const threadUrl = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : '../heartbeat-thread.js', import.meta.url);

/** A small space for new objects is collected often and quickly: no collection may take as long as a heartbeat. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 };

export class Heartbeat {
  readonly #worker: Worker;
  readonly #listening = Promise.withResolvers<void>();

  constructor(data: ThreadData, hooks: HeartbeatHooks) {
    this.#worker = new Worker(threadUrl, { workerData: data, name: 'heartbeat', resourceLimits });
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

  /** The vote of the API server is ours until then, by the clock of this thread; undefined: it is not. */
  vote(untilMs: number | undefined, epoch: number): void {
    const remainingMs = untilMs === undefined ? undefined : untilMs - systemClock.monotonicMs();
    // Clocks of threads begin at different times, and a message may wait: so the date is told on the clock of the machine.
    const atMs = remainingMs === undefined ? undefined : machineMs() + remainingMs;
    this.#post({ kind: 'vote', atMs, epoch });
  }

  /** The tunnel addresses of all nodes. */
  setAddresses(addresses: ReadonlyMap<string, string>): void {
    this.#post({ kind: 'addresses', addresses });
  }

  /** Which EIPs lie ready. */
  setReady(ready: ReadyEips): void {
    this.#post({ kind: 'ready', ready });
  }

  /** Where the outside is; undefined: nobody looks. */
  setUplink(place: UplinkPlace | undefined): void {
    this.#post({ kind: 'uplink', place });
  }

  /** Who knows the connections of other nodes' EIPs; the port goes to the thread. */
  setMirror(port: MessagePort): void {
    this.#worker.postMessage({ kind: 'mirror', port } satisfies ToThread, [port]);
  }

  /** Somebody has replaced what the kernel holds: it is told again at once. */
  renew(): void {
    this.#post({ kind: 'renew' });
  }

  /** Ends the thread. The kernel holds what it holds. May be called twice. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}
