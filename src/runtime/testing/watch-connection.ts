/** WatchConnection is one open watch of the in-memory API server, with the faults it was given. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../process/clock.ts';
import { gone } from './answer.ts';
import type { Fault, StreamFault } from './faults.ts';
import type { Change, ObjectStore, StoredObject } from './object-store.ts';
import type { Filter } from './selector.ts';

/** How to serve one watch. */
export interface WatchRequest {
  readonly response: ServerResponse;
  readonly filter: Filter;
  /** Turns an object into what is sent: the whole of it, or its metadata. */
  readonly textOf: (object: StoredObject) => string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly fault: Fault | undefined;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly bookmarkEveryMs: number;
  readonly store: ObjectStore;
}

export class WatchConnection {
  readonly #request: WatchRequest;
  readonly #cancels: Array<() => void> = [];
  #sent = 0;
  #isSilent = false;

  constructor(request: WatchRequest) {
    this.#request = request;
    request.response.writeHead(200, { 'content-type': 'application/json' });
    request.response.flushHeaders();
    this.#cancels.push(request.clock.after(request.timeoutMs, () => this.break('end')));
    this.#scheduleBookmark();
    request.response.on('close', () => this.#stop());
    this.#breakIfDue();
  }

  /** Sends what a change means to this watch: an object that leaves the filter is deleted for it. */
  send(change: Change): void {
    const { filter } = this.#request;
    const isIn = change.type !== 'DELETED' && filter(change.object);
    const wasIn = change.previous !== undefined && filter(change.previous);
    if (isIn) this.#event(wasIn ? 'MODIFIED' : 'ADDED', change.object);
    else if (wasIn) this.#event('DELETED', change.object);
  }

  /** Sends the present objects and the bookmark that ends them. */
  sendInitial(objects: readonly StoredObject[]): void {
    for (const object of objects) this.#event('ADDED', object);
    this.bookmark({ 'k8s.io/initial-events-end': 'true' });
  }

  /** Tells the watcher that it has seen everything up to now. */
  bookmark(annotations?: Readonly<Record<string, string>>): void {
    const { apiVersion, kind, store } = this.#request;
    const metadata = { resourceVersion: String(store.version), ...(annotations === undefined ? {} : { annotations }) };
    this.#line(JSON.stringify({ type: 'BOOKMARK', object: { apiVersion, kind, metadata } }));
  }

  /** Breaks the watch in the given way. A watch that has ended cannot be broken again. */
  break(how: StreamFault): void {
    const { response } = this.#request;
    if (response.writableEnded || response.destroyed) return;
    switch (how) {
      case 'end':
        response.end();
        return;
      case 'drop':
        response.socket?.resetAndDestroy();
        return;
      case 'cut':
        this.#isSilent = true;
        response.write('{"type":"MODIFIED","object":{"metadata":{"na', () => response.socket?.resetAndDestroy());
        return;
      case 'stall':
        this.#isSilent = true;
        return;
      case 'garbage':
        this.#line('{"type":"MODIFIED","object":{"metadata":{"na{{{');
        return;
      case 'gone':
        this.#line(JSON.stringify({ type: 'ERROR', object: gone.body }));
        response.end();
        return;
    }
  }

  #event(type: Change['type'], object: StoredObject): void {
    const line = `{"type":"${type}","object":${this.#request.textOf(object)}}`;
    this.#line(line);
    if (this.#request.fault?.kind === 'duplicate') this.#line(line);
    this.#sent += 1;
    this.#breakIfDue();
  }

  #breakIfDue(): void {
    const { fault } = this.#request;
    if (fault?.kind === 'stream' && this.#sent === fault.afterEvents) this.break(fault.how);
  }

  #line(text: string): void {
    const { response } = this.#request;
    if (!this.#isSilent && !response.writableEnded && !response.destroyed) response.write(`${text}\n`);
  }

  #scheduleBookmark(): void {
    const { clock, bookmarkEveryMs } = this.#request;
    const cancel = clock.after(bookmarkEveryMs, () => {
      this.#cancels.splice(this.#cancels.indexOf(cancel), 1);
      this.bookmark();
      this.#scheduleBookmark();
    });
    this.#cancels.push(cancel);
  }

  #stop(): void {
    for (const cancel of this.#cancels.splice(0)) cancel();
  }
}
