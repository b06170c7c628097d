/** eventually is how tests wait: on a condition, with a limit, never for a fixed time. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Resolves when the condition holds; rejects after the limit, naming what did not happen. The limit only ends a test that
 * hangs: on a machine with much else to do everything takes ten times as long.
 */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 120_000,
): Promise<void> {
  const endsAtMs = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > endsAtMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(5);
  }
}
