/**
 * Caller makes calls safe to use on a busy server: a limit for each call, the client-side rate limit, retries of
 * what may be repeated, and one more try with fresh credentials after a 401.
 */

import { type Clock, wait, withLimit } from '../process/clock.ts';
import { TokenBucket } from '../process/token-bucket.ts';
import type { ServerAccess } from './access.ts';
import { ApiError, isNotDone, isTransient, isUnauthorized } from './api-error.ts';
import { callBackoffMs } from './backoff.ts';
import { type Call, callName, requestOf, resourceLabel } from './call.ts';
import type { CallOptions } from './client.ts';
import { answerError } from './status.ts';
import { type HttpAnswer, Transport } from './transport.ts';

/** One attempt of a call, for metrics. */
export interface RequestRecord {
  readonly verb: string;
  /** `plural` or `plural.group`; `raw` for calls outside the object model. */
  readonly resource: string;
  /** HTTP status, or 0 when there was no answer. */
  readonly status: number;
  /** Until the answer began, or until the attempt failed. */
  readonly durationMs: number;
}

/** What a client is made of. */
export interface KubeClientOptions {
  readonly access: ServerAccess;
  /** Who we are in the server's audit log: `sallyport-agent/1.2.3`. */
  readonly userAgent: string;
  readonly clock: Clock;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
  /** Client-side rate limit; 50 per second with a burst of 100 when absent. */
  readonly rateLimit?: { readonly perSecond: number; readonly burst: number };
  readonly onRequest?: (record: RequestRecord) => void;
}

const defaultTimeoutMs = 30_000;
const defaultRetries = 3;
const defaultRateLimit = { perSecond: 50, burst: 100 };

export class Caller {
  readonly #options: KubeClientOptions;
  readonly #transport: Transport;
  readonly #bucket: TokenBucket;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#transport = new Transport(options.access, options.userAgent);
    const { perSecond, burst } = options.rateLimit ?? defaultRateLimit;
    this.#bucket = new TokenBucket(options.clock, perSecond, burst);
  }

  /** Makes a whole call, with its repeats, and resolves with the body of the good answer. */
  send(call: Call, options: CallOptions = {}): Promise<string> {
    const limitMs = options.timeoutMs ?? defaultTimeoutMs;
    const endsAtMs = this.#options.clock.monotonicMs() + limitMs;
    return this.#limited(call, limitMs, options.signal, async (signal) => {
      for (let repeat = 0; ; repeat += 1) {
        try {
          const answer = await this.#authorised(call, signal);
          return await answer.text();
        } catch (error) {
          const pauseMs = this.#pauseBefore(repeat, error);
          const mayRepeat = isNotDone(error) || (call.isIdempotent && isTransient(error));
          // A pause beyond the limit would only hide the reason behind a timeout.
          const hasTime = this.#options.clock.monotonicMs() + pauseMs < endsAtMs;
          if (!mayRepeat || !hasTime || repeat >= (options.retries ?? defaultRetries) || signal.aborted) throw error;
          await wait(this.#options.clock, pauseMs, signal);
        }
      }
    });
  }

  /** Makes one attempt and resolves when the good answer begins; its body stays open until the signal is aborted. */
  open(call: Call, limitMs: number, signal: AbortSignal): Promise<HttpAnswer> {
    return this.#limited(call, limitMs, signal, () => this.#authorised(call, signal));
  }

  /** Breaks running calls and closes all connections. May be called twice. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  #limited<T>(
    call: Call,
    limitMs: number,
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const error = () => {
      // The pooled connections may lead to a server that is no more; the next call must not inherit them.
      this.#transport.reconnect();
      return ApiError.transport('Timeout', `${callName(call)}: no answer within ${limitMs} ms`);
    };
    return withLimit(this.#options.clock, { ms: limitMs, error, signal }, run);
  }

  async #authorised(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    try {
      return await this.#attempt(call, signal);
    } catch (error) {
      if (!isUnauthorized(error)) throw error;
      this.#options.access.forget();
      return this.#attempt(call, signal);
    }
  }

  async #attempt(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    const { clock, onRequest } = this.#options;
    const pauseMs = this.#bucket.reserve();
    if (pauseMs > 0) await wait(clock, pauseMs, signal);
    signal.throwIfAborted();
    const startMs = clock.monotonicMs();
    let status = 0;
    try {
      const answer = await this.#transport.send(requestOf(call, signal));
      status = answer.status;
      if (status < 400) return answer;
      throw answerError(callName(call), status, await answer.text(), answer.retryAfter);
    } finally {
      const durationMs = clock.monotonicMs() - startMs;
      onRequest?.({ verb: call.verb, resource: resourceLabel(call.resource), status, durationMs });
    }
  }

  #pauseBefore(repeat: number, error: unknown): number {
    const askedMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(callBackoffMs(repeat, this.#options.random), askedMs);
  }
}
