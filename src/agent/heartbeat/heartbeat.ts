/** Heartbeat starts the thread in which the ownership protocol runs, and is the agent's end of the channel to it. */
import type { MessagePort } from 'node:worker_threads';
import type { UplinkPlace } from '../../core/node/uplink.ts';
import type { Input } from '../../core/ownership/port.ts';
import { AgentThread, type Listening } from '../thread/agent-thread.ts';
import type { Hops, ReadyEips } from './gate-controller.ts';
import type { FromThread, ThreadData, ThreadEvent, ToThread } from './thread.ts';

export type { ThreadEvent } from './thread.ts';

export interface HeartbeatHooks {
  /** What the protocol says, and what became of it, all of one turn together. The kernel holds it already. */
  told(tidings: readonly ThreadEvent[]): void;
  /** The thread has ended by a fault of ours or because its address cannot be bound; what the kernel holds stays. */
  failed(error: Error): void;
}

export class Heartbeat {
  readonly #thread: AgentThread<ToThread, Exclude<FromThread, Listening>>;

  constructor(data: ThreadData, hooks: HeartbeatHooks) {
    const place = { name: 'heartbeat', startedBy: import.meta.url, inImage: '../heartbeat-thread.js' };
    this.#thread = new AgentThread(place, data, {
      told: ({ tidings }) => hooks.told(tidings),
      failed: (error) => hooks.failed(error),
    });
  }

  /** Resolves when the socket is open; rejects if it cannot be opened. */
  listening(): Promise<void> {
    return this.#thread.listening();
  }

  /** Something happened on the node, or the plan has changed. */
  take(input: Input): void {
    this.#thread.post({ kind: 'input', input });
  }

  /** The vote of the API server is ours until then, by the clock of the machine; undefined: it is not. */
  vote(untilMs: number | undefined, epoch: number): void {
    this.#thread.post({ kind: 'input', input: { kind: 'tie', untilMs, epoch } });
  }

  /** The tunnel addresses of all nodes: the one at which each is spoken to, and all of them; and by which MAC addresses they announce. */
  setAddresses(addresses: ReadonlyMap<string, string>, hops: Hops, macs: ReadonlySet<string>): void {
    this.#thread.post({ kind: 'addresses', addresses, hops, macs });
  }

  /** Which EIPs lie ready, and about which the network is being asked. */
  setReady(ready: ReadyEips, awaited: ReadyEips): void {
    this.#thread.post({ kind: 'ready', ready, awaited });
  }

  /** Where the outside is; undefined: nobody looks. */
  setUplink(place: UplinkPlace | undefined): void {
    this.#thread.post({ kind: 'uplink', place });
  }

  /** Who knows the connections of other nodes' EIPs; the port goes to the thread. */
  setMirror(port: MessagePort): void {
    this.#thread.post({ kind: 'mirror', port }, [port]);
  }

  /** Somebody has replaced what the kernel holds: it is told again at once. */
  renew(): void {
    this.#thread.post({ kind: 'renew' });
  }

  /** Ends the thread. The kernel holds what it holds. May be called twice. */
  async close(): Promise<void> {
    await this.#thread.close();
  }
}
