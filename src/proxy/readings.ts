/**
 * Readings asks the engine what it counts, every two seconds, and more often while a rule waits for its addresses. Reports and metrics show the last reading, so that nobody who
 * asks costs the engine anything; an engine that does not answer is not ready.
 */
import { EgressError } from '../api/error.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { EngineReading, ProxyEngine } from './engine/engine.ts';

const everyMs = 2_000;
const urgentMs = 250;

const nothing: EngineReading = { rules: new Map(), refused: new Map() };

/** The readings of one engine. `run` once. */
export class Readings {
  readonly #engine: ProxyEngine;
  readonly #clock: Clock;
  readonly #isUrgent: () => boolean;
  #last: EngineReading = nothing;
  #isAnswering = false;

  constructor(engine: ProxyEngine, clock: Clock, isUrgent: () => boolean) {
    this.#engine = engine;
    this.#clock = clock;
    this.#isUrgent = isUrgent;
  }

  /** The last reading that succeeded; empty before the first. */
  get last(): EngineReading {
    return this.#last;
  }

  /** False before the first reading and while the engine does not answer. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Open connections of all rules. */
  get actives(): number {
    return [...this.#last.rules.values()].reduce((sum, { actives }) => sum + actives, 0);
  }

  /** Connections and requests since the engine started, also those that no rule allowed. */
  get taken(): number {
    const { rules, refused } = this.#last;
    const counts = [...[...rules.values()].map(({ connections }) => connections), ...refused.values()];
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.read();
      // Looked at often, because what is urgent may begin at any moment.
      for (
        let waitedMs = 0;
        waitedMs < (this.#isUrgent() ? urgentMs : everyMs) && !signal.aborted;
        waitedMs += urgentMs
      ) {
        await wait(this.#clock, urgentMs, signal);
      }
    }
  }

  /** Reads now. Never rejects for an engine that does not answer. */
  async read(): Promise<void> {
    try {
      this.#last = await this.#engine.read();
      this.#isAnswering = true;
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#isAnswering = false;
    }
  }
}
