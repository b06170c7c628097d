/**
 * readWatch turns the open answer of a watch into events. It ends the watch when the connection is silent for
 * longer than bookmarks allow: a stopped server or a lost route looks like a quiet kind otherwise.
 */
import type { Clock } from '../process/clock.ts';
import { parseEvent } from './answer.ts';
import { ApiError } from './api-error.ts';
import type { WatchEvent } from './client.ts';
import { LineSplitter } from './lines.ts';
import type { KubeObject } from './resource.ts';
import type { HttpAnswer } from './transport.ts';

/** The server sends a bookmark every minute (kube-apiserver, 2026); two and a half of them may be late. */
const defaultStallMs = 150_000;
/** etcd refuses objects over 1.5 MB; a line this long is no event. */
const maxLineBytes = 16 * 1024 * 1024;

/** How to read one watch. `open` sends the request; its body lives until the given signal is aborted. */
export interface WatchReading {
  readonly what: string;
  readonly clock: Clock;
  readonly open: (signal: AbortSignal) => Promise<HttpAnswer>;
  readonly signal: AbortSignal | undefined;
  readonly stallMs: number | undefined;
}

/** Yields events until the server ends the stream or an ERROR event came. Throws ApiError, or the signal's reason. */
export async function* readWatch<T extends KubeObject>(
  reading: WatchReading,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const { what, clock, signal } = reading;
  const stallMs = reading.stallMs ?? defaultStallMs;
  const controller = new AbortController();
  const forward = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) forward();
  signal?.addEventListener('abort', forward, { once: true });
  const stall = new StallTimer(clock, stallMs, () => {
    controller.abort(ApiError.transport('Timeout', `${what}: the stream was silent for ${stallMs} ms`));
  });
  try {
    controller.signal.throwIfAborted();
    const answer = await reading.open(controller.signal);
    const splitter = new LineSplitter(maxLineBytes);
    for await (const chunk of answer.chunks()) {
      for (const line of linesOf(what, splitter, chunk)) {
        const event = parseEvent<T>(what, line);
        yield event;
        if (event.type === 'ERROR') return;
      }
      stall.heard();
    }
  } finally {
    stall.stop();
    signal?.removeEventListener('abort', forward);
    // Frees the connection when the reader stops early.
    controller.abort();
  }
}

function* linesOf(what: string, splitter: LineSplitter, chunk: Buffer): Generator<string, void, undefined> {
  try {
    yield* splitter.push(chunk);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw ApiError.transport('Garbled', `${what}: ${cause.message}`, cause);
  }
}

/** Calls back once when nothing was heard for the limit. One timer runs at a time, however many chunks arrive. */
class StallTimer {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onStall: () => void;
  #heardAtMs: number;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number, onStall: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onStall = onStall;
    this.#heardAtMs = clock.monotonicMs();
    this.#cancel = clock.after(limitMs, () => this.#check());
  }

  heard(): void {
    this.#heardAtMs = this.#clock.monotonicMs();
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const restMs = this.#heardAtMs + this.#limitMs - this.#clock.monotonicMs();
    if (restMs <= 0) this.#onStall();
    else this.#cancel = this.#clock.after(restMs, () => this.#check());
  }
}
