/**
 * How a replica stops: it is not ready any more, so Kubernetes takes it out of the Services, but nobody tells it when every
 * node has heard of that. So it serves on until nothing new has come for a while, and then until open connections have
 * ended. The stop of the process and terminationGracePeriodSeconds of the pod leave it the time.
 */
import { EgressError } from '../api/error.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { ProxyEngine } from './engine/engine.ts';
import type { Readings } from './readings.ts';

/** What leaving needs. */
export interface LeaveDeps {
  readonly clock: Clock;
  readonly engine: Pick<ProxyEngine, 'retire'>;
  readonly readings: Pick<Readings, 'read' | 'actives' | 'taken'>;
  readonly log: Log;
}

/** New connections are served for at least so long: a node that is busy hears late that the replica is gone. */
const leastMs = 5_000;
/** After so long without a new connection, all nodes have heard. */
const quietMs = 3_000;
/** Tunnels and TCP connections may last for hours; after so long they are ended. */
const mostMs = 40_000;
const everyMs = 500;

/** How long the process may take to stop: leaving, and after it the end of the engine and of the rest. */
export const stopLimitMs = mostMs + 15_000;

/** Resolves when the engine may be ended. Never rejects for an engine that does not answer. */
export const leave = async ({ clock, engine, readings, log }: LeaveDeps): Promise<void> => {
  const startMs = clock.monotonicMs();
  await engine.retire().catch((error: unknown) => {
    if (!(error instanceof EgressError)) throw error;
    log.warn({ component: 'engine', reason: error.code }, `clients are not told to go elsewhere: ${error.message}`);
  });
  let [taken, takenAtMs] = [readings.taken, startMs];
  for (;;) {
    await wait(clock, everyMs);
    await readings.read();
    const nowMs = clock.monotonicMs();
    if (readings.taken !== taken) [taken, takenAtMs] = [readings.taken, nowMs];
    const isQuiet = nowMs - startMs >= leastMs && nowMs - takenAtMs >= quietMs;
    if (isQuiet && readings.actives === 0) return;
    if (nowMs - startMs < mostMs) continue;
    log.warn(
      { component: 'engine', count: readings.actives },
      'connections are still open at the end of the time to stop',
    );
    return;
  }
};
