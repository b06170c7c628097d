/**
 * FollowSources tells engine and guard whose addresses clients have, whenever pods come and go. It is not a part of the rules: pods
 * change all the time, and no rule does for it.
 */
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../runtime/process/bug.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { ProxyCaches } from './caches.ts';
import { noSources, type Sources, sourcesOf } from './engine/sources.ts';

export interface FollowSourcesDeps {
  readonly pods: Pick<ProxyCaches['pods'], 'store' | 'synced' | 'subscribe'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Gets the sources whenever they are other than before. */
  readonly admit: (sources: Sources) => Promise<void>;
}

/** Changes of pods come in crowds; one look is for all that came in so long. */
const EVERY_MS = 200;

/** Follows pods until the signal is aborted. */
export const followSources = async (
  { pods, clock, log, admit }: FollowSourcesDeps,
  signal: AbortSignal,
): Promise<void> => {
  // The cache rejects when it ends before it is filled, which is no failure of ours.
  const isFilled = await pods.synced.then(
    () => true,
    () => false,
  );
  if (!isFilled) return;
  let wake = new AbortController();
  const unfollow = pods.subscribe(() => wake.abort());
  let before = noSources;
  while (!signal.aborted) {
    wake = new AbortController();
    const sources = sourcesOf(pods.store.values());
    if (!isDeepStrictEqual(sources, before)) {
      try {
        await admit(sources);
        before = sources;
      } catch (error) {
        log.error({ component: 'sources' }, `the engine does not take the addresses of pods: ${messageOf(error)}`);
        wake.abort();
      }
    }
    await untilAborted(AbortSignal.any([signal, wake.signal]));
    await wait(clock, EVERY_MS, signal);
  }
  unfollow();
};

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
