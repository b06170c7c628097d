/**
 * MirrorSupervisor is the agent's side of mirror supervisor connections: it runs the thread on nodes that may own EIPs, tells it what is to be
 * done, joins it to the thread of heartbeats, and remembers how it stands. What has to be quick is between the two threads.
 */
import { isDeepStrictEqual } from 'node:util';
import type { MessagePort } from 'node:worker_threads';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { MirrorHooks, MirrorThread } from './mirror-thread.ts';
import type { MirrorPlan, MirrorStats } from './port.ts';
import type { MirrorThreadData } from './thread.ts';

/** Starts the thread. */
export type StartMirror = (data: MirrorThreadData, hooks: MirrorHooks) => Omit<MirrorThread, 'listening'>;

export interface MirrorSupervisorDeps {
  readonly startMirror: StartMirror;
  readonly clock: Clock;
  readonly log: Log;
}

/** Whoever takes EIPs over, and has to ask for their connections first. */
export interface Taker {
  setMirror(port: MessagePort): void;
}

/** What is to be done, and for whom. */
export interface MirrorTask {
  readonly data: MirrorThreadData;
  readonly plan: MirrorPlan;
  readonly taker: Taker;
}

/** A thread that failed is started again after this long. */
const againMs = 5_000;

export class MirrorSupervisor {
  readonly #deps: MirrorSupervisorDeps;
  #thread: ReturnType<StartMirror> | undefined;
  #data: MirrorThreadData | undefined;
  #plan: MirrorPlan | undefined;
  #taker: Taker | undefined;
  #stats: MirrorStats | undefined;
  #retryAtMs = -Infinity;

  constructor(deps: MirrorSupervisorDeps) {
    this.#deps = deps;
  }

  /** How it stands; undefined on a node without a mirror. */
  get stats(): MirrorStats | undefined {
    return this.#stats;
  }

  /** Undefined on a node that can own no EIP. May be called with the same value forever. */
  set(wanted: MirrorTask | undefined): void {
    if (wanted === undefined) {
      void this.close();
      return;
    }
    if (!isDeepStrictEqual(this.#data, wanted.data)) this.#start(wanted.data);
    const thread = this.#thread;
    if (thread === undefined) return;
    if (!isDeepStrictEqual(this.#plan, wanted.plan)) thread.set(wanted.plan);
    this.#plan = wanted.plan;
    if (this.#taker !== wanted.taker) wanted.taker.setMirror(thread.port());
    this.#taker = wanted.taker;
  }

  /** Ends the thread. May be called twice. */
  async close(): Promise<void> {
    const thread = this.#forget();
    this.#stats = undefined;
    await thread?.close();
  }

  #forget(): ReturnType<StartMirror> | undefined {
    const thread = this.#thread;
    this.#thread = undefined;
    this.#data = undefined;
    this.#plan = undefined;
    this.#taker = undefined;
    return thread;
  }

  #start(data: MirrorThreadData): void {
    const { startMirror, clock, log } = this.#deps;
    if (clock.monotonicMs() < this.#retryAtMs) return;
    // Not waited for: a port that is still held makes the new thread fail, and that is tried again.
    void this.#forget()?.close();
    const thread = startMirror(data, {
      stats: (stats) => {
        if (thread === this.#thread) this.#stats = stats;
      },
      refused: (why) => log.warn({ component: 'mirror', reason: 'CONNTRACK_FAILED' }, why),
      failed: (error) => {
        log.warn({ component: 'mirror' }, `the thread of the mirror has ended: ${error.message}`);
        if (thread !== this.#thread) return;
        this.#forget();
        this.#retryAtMs = clock.monotonicMs() + againMs;
      },
    });
    this.#thread = thread;
    this.#data = data;
  }
}
