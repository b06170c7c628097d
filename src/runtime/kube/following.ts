/** Following is how a process keeps kinds in memory: one informer for each, with a name by which problems are told. */
import type { Clock } from '../process/clock.ts';
import type { KubeClient } from './client.ts';
import { Informer, type InformerOptions, type InformerProblem } from './informer.ts';
import type { KubeObject, Resource } from './resource.ts';

/** What the informers of a process share. */
export interface FollowingDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  /** Told about what is unreadable and about lost connections, with the name of the cache. */
  readonly onProblem: (cache: string, problem: InformerProblem) => void;
}

/** How one kind is followed. */
export type Followed<T, I extends string = never, O extends KubeObject = KubeObject> = Pick<
  InformerOptions<T, I, O>,
  'project' | 'scope' | 'indexes'
>;

/** Makes the informer of one kind; nothing is read before it runs. */
export const follow = <T, I extends string = never, O extends KubeObject = KubeObject>(
  { client, clock, random, onProblem }: FollowingDeps,
  cache: string,
  resource: Resource,
  how: Followed<T, I, O>,
): Informer<T, I, O> =>
  new Informer({ client, clock, random, resource, onProblem: (problem) => onProblem(cache, problem), ...how });

/** Names of the caches that have not been filled yet. */
export const missingIn = (all: readonly (readonly [string, { readonly isSynced: boolean }])[]): string[] =>
  all.filter(([, { isSynced }]) => !isSynced).map(([name]) => name);

/** Resolves when all caches are filled. A process that stops before that is no failure of whoever waits for it. */
export const syncedIn = (all: readonly (readonly [string, { readonly synced: Promise<void> }])[]): Promise<void> => {
  const synced = Promise.all(all.map(([, cache]) => cache.synced)).then(() => undefined);
  synced.catch(() => {});
  return synced;
};
