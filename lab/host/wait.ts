import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { accountOf, LabFailure } from './failure.ts';

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
 * A probe that throws counts as "not yet". When the limit is reached, the failure tells how often it was asked and threw, what it
 * threw last, how busy the machine is, and what `explain` says: in a log of CI that is all there is.
 */
export async function until<T>(wait: Wait, probe: () => T | Promise<T>): Promise<Exclude<T, undefined | false>> {
  const limitMs = wait.limitMs < shortMs ? wait.limitMs : wait.limitMs * patience;
  const end = performance.now() + limitMs;
  let lastError: unknown;
  let asked = 0;
  let thrown = 0;
  for (;;) {
    wait.signal?.throwIfAborted();
    const askedAt = performance.now();
    asked += 1;
    try {
      const value = await probe();
      // The type says it: undefined and false mean "not yet", all else is the answer.
      if (value !== undefined && value !== false) return value as Exclude<T, undefined | false>;
    } catch (error) {
      thrown += 1;
      lastError = error;
    }
    const now = performance.now();
    if (now >= end) break;
    const pauseMs = Math.max(wait.everyMs ?? 50, Math.min(now - askedAt, longestPauseMs));
    await delay(pauseMs, undefined, wait.signal === undefined ? {} : { signal: wait.signal });
  }
  const load = loadavg().map((each) => each.toFixed(1));
  const detail = [
    `asked ${asked} times, ${thrown} of them threw; load ${load.join(' ')}`,
    thrown === 0 ? '' : accountOf(lastError),
    await explained(wait),
  ];
  throw new LabFailure(`waited ${limitMs / 1000} s for ${wait.what}, in vain`, detail.filter(Boolean).join('\n'));
}

/** An explanation that fails must not take the place of what it explains. */
async function explained({ explain }: Wait): Promise<string> {
  try {
    return (await explain?.()) ?? '';
  } catch (error) {
    return `not explained: ${accountOf(error)}`;
  }
}
