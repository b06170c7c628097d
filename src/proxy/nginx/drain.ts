/**
 * Drain bounds how many older generations nginx keeps: each reload leaves workers behind that finish their connections, and
 * each of them holds memory. A change waits a little for room; then the oldest workers are ended, because a change that
 * is never made would be worse, and connections that old are the best ones to lose.
 */
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { Master } from './program.ts';

export interface DrainDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Older generations that may finish at the same time (default 16: 400 MB with a thousand rules and two workers). */
  readonly most?: number;
  /** How long a change waits for room (default 5 s). */
  readonly waitMs?: number;
  /** Ends a worker with all its connections; the machine's own way when absent. */
  readonly end?: (pid: number) => void;
}

const EVERY_MS = 100;

export class Drain {
  readonly #deps: DrainDeps;
  /** Workers by the reload that ended their service, the oldest first. */
  #generations: readonly (readonly number[])[] = [];

  constructor(deps: DrainDeps) {
    this.#deps = deps;
  }

  /** Call it before a reload: resolves when there is room for one more generation. */
  async makeRoom(master: Pick<Master, 'workers'>): Promise<void> {
    const { clock, log, most = 16, waitMs = 5_000, end = terminate } = this.#deps;
    const endsAtMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const { serving, draining } = await master.workers();
      this.#generations = known(this.#generations, draining);
      if (this.#generations.length < most) {
        // Those that serve now are the next to drain.
        this.#generations = [...this.#generations, serving];
        return;
      }
      if (clock.monotonicMs() >= endsAtMs) {
        const [oldest = []] = this.#generations;
        log.warn(
          { component: 'nginx', count: oldest.length },
          `${most} older generations still have connections; the oldest is ended`,
        );
        for (const pid of oldest) end(pid);
      }
      await wait(clock, EVERY_MS);
    }
  }
}

/** The generations that still have workers. Workers that nobody put into one, such as after a crash, are the oldest. */
const known = (generations: readonly (readonly number[])[], draining: readonly number[]): (readonly number[])[] => {
  const left = generations
    .map((pids) => pids.filter((pid) => draining.includes(pid)))
    .filter(({ length }) => length > 0);
  const unknown = draining.filter((pid) => !left.flat().includes(pid));
  return unknown.length === 0 ? left : [unknown, ...left];
};

const terminate = (pid: number): void => {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It ended by itself.
  }
};
