/**
 * EventRecorder writes Kubernetes events (events.k8s.io/v1) for people. An event that repeats is one object whose
 * series counts: the first occurrence is written at once, repeats at most every half minute. Of one reason some are
 * written at once and then one a second, and other reasons do not wait for it: when a node with a thousand EIPs is lost, the API server has better
 * things to do. Events are a courtesy: what cannot be written is dropped, and nothing waits for them.
 */
import { type Clock, wait } from '../process/clock.ts';
import { ApiError, isNotFound } from './api-error.ts';
import type { KubeClient } from './client.ts';
import type { KubeObject, Resource } from './resource.ts';

const events: Resource = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** The object an event is about. */
export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

/** What happened, in the words of the API: a reason from our list, an action, a sentence. */
export interface EventFacts {
  readonly regarding: Regarding;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  /** Who reports, as a qualified name: `sallyport.io/controller`. */
  readonly controller: string;
  /** Which process reports: the pod's name. */
  readonly instance: string;
  readonly onDropped?: (facts: EventFacts, error: ApiError) => void;
}

/** One event object and how often it happened. */
interface Series {
  readonly facts: EventFacts;
  readonly name: string;
  readonly firstAt: Date;
  lastAt: Date;
  lastMs: number;
  count: number;
  writtenCount: number;
  writtenMs: number;
}

/** Repeats are gathered for this long before the series is written again. */
const foldMs = 30_000;
/** A pause this long ends a series, as in client-go; the next occurrence is a new event. */
const seriesEndMs = 6 * 60_000;
/** More different events than this at once are noise; the oldest are forgotten. */
const maxSeries = 1_000;
/** So many events of one reason are written at once, and one more each time this has passed. */
const burst = 50;
const refillMs = 1_000;
/** Limit of the API for notes. */
const maxNoteLength = 1_024;

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  /** facts -> series, oldest first */
  readonly #seriesByFacts = new Map<string, Series>();
  /** reason -> when all that was written of it is forgotten: each event adds to it. */
  readonly #paidByReason = new Map<string, number>();
  /** Aborted when something was recorded, which ends the pause of run(). */
  #wake = new AbortController();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Notes that something happened. Returns at once and never throws. */
  record(facts: EventFacts): void {
    const { clock } = this.#options;
    const key = JSON.stringify(facts);
    const nowMs = clock.monotonicMs();
    const known = this.#seriesByFacts.get(key);
    if (known !== undefined && nowMs - known.lastMs < seriesEndMs) {
      known.count += 1;
      known.lastAt = clock.now();
      known.lastMs = nowMs;
    } else {
      this.#seriesByFacts.delete(key);
      this.#seriesByFacts.set(key, this.#newSeries(facts, nowMs));
      const [oldest] = this.#seriesByFacts.keys();
      if (this.#seriesByFacts.size > maxSeries && oldest !== undefined) this.#seriesByFacts.delete(oldest);
    }
    this.#wake.abort();
  }

  /** Writes what was recorded until the signal is aborted; what is unwritten then is dropped. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const nextMs = await this.#writeDue(signal);
      await wait(this.#options.clock, nextMs, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  /** Writes every series that is due and returns how long the next one has time. */
  async #writeDue(signal: AbortSignal): Promise<number> {
    let nextMs = foldMs;
    for (const [key, series] of [...this.#seriesByFacts]) {
      if (signal.aborted) return nextMs;
      const nowMs = this.#options.clock.monotonicMs();
      if (series.count === series.writtenCount) {
        if (nowMs - series.lastMs >= seriesEndMs) this.#seriesByFacts.delete(key);
        continue;
      }
      const dueInMs = Math.max(series.writtenMs + foldMs - nowMs, this.#turnInMs(series.facts.reason, nowMs));
      if (dueInMs <= 0) {
        this.#takeTurn(series.facts.reason, nowMs);
        await this.#write(key, series, signal);
      } else nextMs = Math.min(nextMs, dueInMs);
    }
    return nextMs;
  }

  /** When one more event of the reason may be written. */
  #turnInMs(reason: string, nowMs: number): number {
    return (this.#paidByReason.get(reason) ?? 0) - nowMs - (burst - 1) * refillMs;
  }

  #takeTurn(reason: string, nowMs: number): void {
    this.#paidByReason.set(reason, Math.max(nowMs, this.#paidByReason.get(reason) ?? 0) + refillMs);
  }

  async #write(key: string, series: Series, signal: AbortSignal): Promise<void> {
    const { count } = series;
    try {
      await this.#send(series, count, signal);
      series.writtenCount = count;
      series.writtenMs = this.#options.clock.monotonicMs();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.#seriesByFacts.delete(key);
      // The server forgets events after an hour; then the series begins anew.
      if (isNotFound(error) && series.writtenCount > 0) this.record(series.facts);
      else this.#options.onDropped?.(series.facts, error);
    }
  }

  async #send(series: Series, count: number, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const namespace = series.facts.regarding.namespace ?? 'default';
    const fold = count > 1 ? { series: { count, lastObservedTime: microTime(series.lastAt) } } : {};
    if (series.writtenCount === 0) {
      await client.create(events, { ...this.#eventOf(series, namespace), ...fold }, { signal });
    } else {
      await client.patch(events, { namespace, name: series.name }, { kind: 'merge', value: fold }, { signal });
    }
  }

  #eventOf(series: Series, namespace: string): KubeObject {
    const { regarding, type, reason, action, note } = series.facts;
    const event = {
      metadata: { namespace, name: series.name },
      eventTime: microTime(series.firstAt),
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance.slice(0, 128),
      type,
      reason,
      action,
      regarding,
      note: note.length > maxNoteLength ? `${note.slice(0, maxNoteLength - 3)}...` : note,
    };
    return event;
  }

  #newSeries(facts: EventFacts, nowMs: number): Series {
    const { clock, random } = this.#options;
    const at = clock.now();
    const suffix = `${at.getTime().toString(16)}${Math.floor(random() * 0x10000)
      .toString(16)
      .padStart(4, '0')}`;
    return {
      facts,
      name: `${facts.regarding.name.slice(0, 230)}.${suffix}`,
      firstAt: at,
      lastAt: at,
      lastMs: nowMs,
      count: 1,
      writtenCount: 0,
      writtenMs: Number.NEGATIVE_INFINITY,
    };
  }
}

/** MicroTime of the API: exactly six digits after the second. */
function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
