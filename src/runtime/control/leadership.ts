/**
 * Leadership runs the work of a leader for as long as this process holds the lease, and again each time it wins the lease
 * anew. Losing the lease ends that work and nothing else: webhooks of a process on a starved machine go on answering.
 */
import { ApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { Bug } from '../process/bug.ts';
import { type Clock, withLimit } from '../process/clock.ts';
import { LeaderLease, type LeaseDeps } from './lease.ts';
import { LeaseLost } from './lease-lost.ts';

/** One uninterrupted time as the leader. */
export interface Term {
  /** Aborted when the work is to end: with a LeaseLost when another process may lead now. */
  readonly signal: AbortSignal;
  /** True while no other process can lead. */
  isLeader(): boolean;
}

/** What a leadership needs. */
export interface LeadershipDeps extends LeaseDeps {
  /** The work of one term. It resolves soon after the signal of the term is aborted; it rejects only on a bug. */
  readonly lead: (term: Term) => Promise<void>;
}

/** What still works after the lease is lost has this long to end; the process ends otherwise. */
const endLimitMs = 10_000;

/** The candidacies of one process, one after the other. `run` it once. */
export class Leadership {
  readonly #deps: LeadershipDeps;
  #lease: LeaderLease | undefined;

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
  }

  /** True while no other process can lead. */
  isLeader(): boolean {
    return this.#lease?.isLeader() ?? false;
  }

  /** Runs until the signal is aborted; then ends the work first and gives the lease back after it. Rejects only on a bug. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.#candidacy(signal);
  }

  async #candidacy(signal: AbortSignal): Promise<void> {
    const lease = new LeaderLease(this.#deps);
    this.#lease = lease;
    const term = new AbortController();
    const release = new AbortController();
    const failed = Promise.withResolvers<never>();
    let work: Promise<void> = Promise.resolve();
    const stop = (): void => {
      term.abort(signal.reason);
      // Whoever leads next should find the work done, so the lease is kept until then.
      void work.catch(() => undefined).then(() => release.abort());
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      const held = lease.run(release.signal, {
        onLeading: () => {
          work = this.#deps.lead({ signal: term.signal, isLeader: () => lease.isLeader() });
          work.catch(failed.reject);
          if (signal.aborted) stop();
        },
        onLost: (loss) => term.abort(new LeaseLost(loss)),
      });
      await Promise.race([held, failed.promise]);
      if (!signal.aborted) await ended(this.#deps.clock, work);
    } finally {
      signal.removeEventListener('abort', stop);
      release.abort();
    }
  }
}

const ended = (clock: Clock, work: Promise<void>): Promise<void> =>
  withLimit(
    clock,
    {
      ms: endLimitMs,
      error: () => new Bug(`the work of the leader goes on ${endLimitMs / 1000} s after the lease was lost`),
    },
    () => work,
  );

/** The client for the work of one term: it refuses to write once another process may lead. */
export const clientDuring = (client: KubeClient, { isLeader }: Pick<Term, 'isLeader'>): KubeClient => {
  const writing = (): KubeClient => {
    if (isLeader()) return client;
    throw new ApiError({ status: 0, reason: 'NotLeader', message: 'not sent: another process may lead now' });
  };
  return {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    watch: (...args) => client.watch(...args),
    raw: (...args) => client.raw(...args),
    close: () => client.close(),
    create: async (...args) => writing().create(...args),
    update: async (...args) => writing().update(...args),
    patch: async (...args) => writing().patch(...args),
    apply: async (...args) => writing().apply(...args),
    applyStatus: async (...args) => writing().applyStatus(...args),
    delete: async (...args) => writing().delete(...args),
  };
};
