/**
 * Detection is how quickly this node takes another one for lost: as configured, or later where processors are short. It is reported
 * from twice the configured silence on: less comes and goes on every node that works. What is reported only grows until all is as configured
 * again, in few steps: a report for each change would be work where processors are short.
 */

/** The longest silence that this node grants to another one now, and the one of the configuration. */
export interface Silence {
  readonly silenceMs: number;
  readonly usualMs: number;
  readonly widestMs: number;
}

export class Detection {
  #now: Silence | undefined;
  #reportedMs: number | undefined;

  /** In milliseconds; undefined while nodes do not watch each other. */
  get silenceMs(): number | undefined {
    return this.#now?.silenceMs;
  }

  /** After how long a loss is noticed; undefined while that is as configured. */
  get reportedMs(): number | undefined {
    return this.#reportedMs;
  }

  /** Another silence is granted. Returns whether it is a longer one, and whether what is reported has changed. */
  take(silence: Silence): { readonly isWidened: boolean; readonly isNews: boolean } {
    const { silenceMs, usualMs } = silence;
    const isWidened = silenceMs > (this.#now?.silenceMs ?? usualMs);
    this.#now = silence;
    const before = this.#reportedMs;
    if (silenceMs <= usualMs) this.#reportedMs = undefined;
    else if (silenceMs > (before ?? 2 * usualMs)) this.#reportedMs = stepFor(silence);
    return { isWidened, isNews: this.#reportedMs !== before };
  }
}

/** The usual silence, doubled until it is long enough. */
const stepFor = ({ silenceMs, usualMs, widestMs }: Silence): number => {
  let stepMs = usualMs;
  while (stepMs < silenceMs) stepMs *= 2;
  return Math.min(stepMs, widestMs);
};
