/**
 * Drain bounds how many older generations nginx keeps, and how long: each reload leaves workers behind that finish their
 * connections, and each of them holds memory, or connections of a rule that is gone. A change waits a little for room; then the
 * oldest workers are ended, because a change that is never made would be worse, and connections that old are the best ones to lose.
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
  #generations: readonly Generation[] = [];

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
        this.#generations = [...this.#generations, { pids: serving, endsAtMs: Infinity }];
        return;
      }
      if (clock.monotonicMs() >= endsAtMs) {
        const oldest = this.#generations[0]?.pids ?? [];
        log.warn(
          { component: 'nginx', count: oldest.length },
          `${most} older generations still have connections; the oldest is ended`,
        );
        for (const pid of oldest) end(pid);
      }
      await wait(clock, EVERY_MS);
    }
  }

  /** Call it after a reload: all generations that finish now may do so for no longer than this. */
  limit(ms: number): void {
    const endsAtMs = this.#deps.clock.monotonicMs() + ms;
    this.#generations = this.#generations.map((one) => ({ ...one, endsAtMs: Math.min(one.endsAtMs, endsAtMs) }));
  }

  /** True when a generation should have ended by now. */
  get isLate(): boolean {
    return this.#generations.some((one) => this.#isLate(one));
  }

  /** Ends generations whose time is over; call it now and then, but not while a reload is under way. */
  async endLate(master: Pick<Master, 'workers'>): Promise<void> {
    const { log, end = terminate } = this.#deps;
    const { draining } = await master.workers();
    // Numbers of processes are given again.
    this.#generations = known(this.#generations, draining);
    const late = this.#generations.filter((one) => this.#isLate(one)).flatMap(({ pids }) => pids);
    this.#generations = this.#generations.filter((one) => !this.#isLate(one));
    if (late.length === 0) return;
    log.info(
      { component: 'nginx', count: late.length },
      'an older generation had rules that are gone; its time is over',
    );
    for (const pid of late) end(pid);
  }

  #isLate({ endsAtMs }: Generation): boolean {
    return endsAtMs <= this.#deps.clock.monotonicMs();
  }
}

interface Generation {
  readonly pids: readonly number[];
  /** On the monotonic clock. */
  readonly endsAtMs: number;
}

/** The generations that still have workers. Workers that nobody put into one, such as after a crash, are the oldest. */
const known = (generations: readonly Generation[], draining: readonly number[]): Generation[] => {
  const left = generations
    .map((one) => ({ ...one, pids: one.pids.filter((pid) => draining.includes(pid)) }))
    .filter(({ pids }) => pids.length > 0);
  const found = new Set(left.flatMap(({ pids }) => pids));
  const unknown = draining.filter((pid) => !found.has(pid));
  return unknown.length === 0 ? left : [{ pids: unknown, endsAtMs: Infinity }, ...left];
};

const terminate = (pid: number): void => {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It ended by itself.
  }
};
