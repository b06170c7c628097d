import { setTimeout as delay } from 'node:timers/promises';
import { LabFailure } from './failure.ts';

/** How a wait is bounded and how it explains itself when the limit is reached. */
export interface Wait {
  readonly what: string;
  /** When the wait counts as hopeless, on a machine with nothing else to do. It is no promise about time: who promises one measures it. */
  readonly limitMs: number;
  readonly everyMs?: number;
  /** Called once at the limit; its text becomes the detail of the failure (for example the end of a log). */
  readonly explain?: () => string | Promise<string>;
  readonly signal?: AbortSignal;
}

/**
 * A machine that is slower, or has much else to do, gets this many times as long. Limits below ten seconds are left as they
 * are: these are of waits for something that need not come.
 */
const patience = 3;
const shortMs = 10_000;
/** Between two questions there is as long a pause as a question takes, up to this: kubectl costs what we wait for as much as us. */
const longestPauseMs = 500;

/**
 * Asks `probe` again and again until it returns something other than undefined or false, and returns that.
 * A probe that throws counts as "not yet"; its last error is named when the limit is reached.
 */
export async function until<T>(wait: Wait, probe: () => T | Promise<T>): Promise<Exclude<T, undefined | false>> {
  const limitMs = wait.limitMs < shortMs ? wait.limitMs : wait.limitMs * patience;
  const end = performance.now() + limitMs;
  let lastError: unknown;
  for (;;) {
    wait.signal?.throwIfAborted();
    const askedAt = performance.now();
    try {
      const value = await probe();
      // The type says it: undefined and false mean "not yet", all else is the answer.
      if (value !== undefined && value !== false) return value as Exclude<T, undefined | false>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    const now = performance.now();
    if (now >= end) break;
    const pauseMs = Math.max(wait.everyMs ?? 50, Math.min(now - askedAt, longestPauseMs));
    await delay(pauseMs, undefined, wait.signal === undefined ? {} : { signal: wait.signal });
  }
  const detail = [lastError instanceof Error ? lastError.message : '', (await wait.explain?.()) ?? '']
    .filter(Boolean)
    .join('\n');
  throw new LabFailure(`waited ${limitMs / 1000} s for ${wait.what}, in vain`, detail);
}
