/** MirrorThread starts the thread in which connections are mirrored, and is the agent's end of the channel to it. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { AgentThread, type Listening } from '../thread/agent-thread.ts';
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

export class MirrorThread {
  readonly #thread: AgentThread<ToMirrorThread, Exclude<FromMirrorThread, Listening>>;

  constructor(data: MirrorThreadData, { stats, refused, failed }: MirrorHooks) {
    const place = { name: 'mirror', startedBy: import.meta.url, inImage: '../mirror-thread.js' };
    this.#thread = new AgentThread(place, data, {
      told: (told) => (told.kind === 'stats' ? stats(told.stats) : refused(told.why)),
      failed,
    });
  }

  /** Resolves when the socket is open; rejects if it cannot be opened. */
  listening(): Promise<void> {
    return this.#thread.listening();
  }

  /** What this node owns and who follows it. Call it before the kernel lets go of an EIP: what it forgets then is told to nobody. */
  set(plan: MirrorPlan): void {
    this.#thread.post({ kind: 'plan', plan });
  }

  /** A port for another thread, which makes an `Mirror client` of it and asks without the agent between. Transfer it. */
  port(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#thread.post({ kind: 'asker', port: port1 }, [port1]);
    return port2;
  }

  /** Ends the thread. May be called twice. */
  async close(): Promise<void> {
    await this.#thread.close();
  }
}
