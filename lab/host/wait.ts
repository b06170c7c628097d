import { setTimeout as delay } from 'node:timers/promises';
import { LabFailure } from './failure.ts';

/** How a wait is bounded and how it explains itself when the limit is reached. */
export interface Wait {
  readonly what: string;
  readonly limitMs: number;
  readonly everyMs?: number;
  /** Called once at the limit; its text becomes the detail of the failure (for example the end of a log). */
  readonly explain?: () => string | Promise<string>;
  readonly signal?: AbortSignal;
}

/**
 * Asks `probe` again and again until it returns something other than undefined or false, and returns that.
 * A probe that throws counts as "not yet"; its last error is named when the limit is reached.
 */
export async function until<T>(wait: Wait, probe: () => T | Promise<T>): Promise<Exclude<T, undefined | false>> {
  const end = performance.now() + wait.limitMs;
  let lastError: unknown;
  for (;;) {
    wait.signal?.throwIfAborted();
    try {
      const value = await probe();
      // The type says it: undefined and false mean "not yet", all else is the answer.
      if (value !== undefined && value !== false) return value as Exclude<T, undefined | false>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= end) break;
    await delay(wait.everyMs ?? 50, undefined, wait.signal === undefined ? {} : { signal: wait.signal });
  }
  const detail = [lastError instanceof Error ? lastError.message : '', (await wait.explain?.()) ?? '']
    .filter(Boolean)
    .join('\n');
  throw new LabFailure(`waited ${wait.limitMs / 1000} s for ${wait.what}, in vain`, detail);
}
