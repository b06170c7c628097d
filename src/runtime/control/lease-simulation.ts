/**
 * A simulated world for the tests of the lease: machines with bad clocks, a bad network, and one server.
 * Time moves only by hand, and all chance comes from a seed, so that a failure can be run again. Tests only.
 */
import assert from 'node:assert/strict';
import { type Clock, ManualClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { defaultLeaseTiming, LeaderLease, type LeaseTiming } from './lease.ts';
import type { LeaseLoss } from './lease-lost.ts';
import type { LeaseRecord, LeaseStore, StoredLease } from './lease-record.ts';

const log = createLog({ process: 'test', level: 'silent' });

/** A small generator (mulberry32), so that a failing simulation can be run again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The one true record, with the rule that makes leases work: a write must name the version it is based on. */
class Server {
  stored: StoredLease | undefined;
  #writes = 0;

  write(record: LeaseRecord, version: string | undefined): boolean {
    if (this.stored?.version !== version) return false;
    this.#writes += 1;
    this.stored = { record, version: String(this.#writes) };
    return true;
  }
}

/** How badly a network behaves: chances from 0 to 1 for each call, and the longest delay of each way. */
export interface Weather {
  readonly loss: number;
  readonly refusal: number;
  readonly maxDelayMs: number;
}

export const calm: Weather = { loss: 0, refusal: 0, maxDelayMs: 0 };

/** One machine: a clock that runs at its own speed and can freeze, a network of its own, and processes one by one. */
export class Machine {
  readonly clock: Clock;
  weather = calm;
  frozenUntilMs = 0;
  lease: LeaderLease | undefined;
  readonly losses: LeaseLoss[] = [];
  readonly #world: LeaseSimulation;
  readonly #name: string;
  #life = 0;
  #stop = new AbortController();

  constructor(world: LeaseSimulation, name: string, rate: number, skewMs: number) {
    this.#world = world;
    this.#name = name;
    this.clock = {
      now: () => new Date(world.clock.now().getTime() + skewMs),
      monotonicMs: () => world.clock.monotonicMs() * rate + 1_000_000,
      after: (delayMs, callback) => this.#later(delayMs / rate, callback),
    };
  }

  /** Starts a process; each one is a new candidate. When it loses the lease it ends, and another starts a second later. */
  start(): void {
    this.#life += 1;
    this.#stop = new AbortController();
    const lease = new LeaderLease({
      store: this.#store(),
      identity: `${this.#name}-${this.#life}`,
      clock: this.clock,
      random: this.#world.random,
      log,
      timing: this.#world.timing,
    });
    this.lease = lease;
    void lease.run(this.#stop.signal, {
      onLeading: () => {
        if (!lease.isLeader()) this.#world.violations.push(`${this.#name} was told to lead when it may not`);
        this.#world.observe();
      },
      onLost: (loss) => {
        this.losses.push(loss);
        this.crash();
        this.#world.clock.after(1_000, () => this.start());
      },
    });
  }

  /** Ends the process as kill -9 does. What it has sent is still on its way. */
  crash(): void {
    this.#life += 1;
    this.lease = undefined;
  }

  /** Ends the process as SIGTERM does. */
  stop(): void {
    this.#stop.abort();
  }

  /** Lets no code of this machine run for a while, as a suspended virtual machine would. Its clock goes on. */
  freeze(ms: number): void {
    this.frozenUntilMs = this.#world.clock.monotonicMs() + ms;
  }

  /** Calls back in this process, not before the freeze is over, and never after its end. */
  #later(worldMs: number, callback: () => void, life = this.#life): () => void {
    let cancel = (): void => undefined;
    const fire = (): void => {
      if (this.#life !== life) return;
      const frozenMs = this.frozenUntilMs - this.#world.clock.monotonicMs();
      if (frozenMs > 0) cancel = this.#world.clock.after(frozenMs, fire);
      else callback();
    };
    cancel = this.#world.clock.after(worldMs, fire);
    return () => cancel();
  }

  #store(): LeaseStore {
    const server = this.#world.server;
    return {
      read: () => this.#call(() => server.stored),
      write: (record, version) => this.#call(() => server.write(record, version)),
    };
  }

  /** A call through the weather. The server may act although the caller never hears of it, even long after it gave up. */
  #call<T>(act: () => T): Promise<T> {
    const { random, clock } = this.#world;
    const { loss, refusal, maxDelayMs } = this.weather;
    const answer = Promise.withResolvers<T>();
    // The process that asks; another may run here when the answer comes.
    const life = this.#life;
    if (random() < loss) return answer.promise;
    clock.after(random() * maxDelayMs, () => {
      const isRefused = random() < refusal;
      const result = isRefused ? undefined : { value: act() };
      if (random() < loss) return;
      const deliver = (): void => {
        if (result === undefined) answer.reject(new Error('503'));
        else answer.resolve(result.value);
      };
      this.#later(random() * maxDelayMs, deliver, life);
    });
    return answer.promise;
  }
}

/** Several machines, one server, one true time. */
export class LeaseSimulation {
  readonly clock = new ManualClock();
  readonly server = new Server();
  readonly random: () => number;
  readonly timing: LeaseTiming;
  readonly machines: Machine[] = [];
  readonly violations: string[] = [];

  constructor(options: { readonly seed?: number; readonly timing?: LeaseTiming } = {}) {
    this.random = seeded(options.seed ?? 1);
    this.timing = options.timing ?? defaultLeaseTiming;
  }

  add(rate = 1, skewMs = 0): Machine {
    const machine = new Machine(this, `node-${this.machines.length}`, rate, skewMs);
    this.machines.push(machine);
    machine.start();
    return machine;
  }

  leaders(): readonly Machine[] {
    return this.machines.filter((machine) => machine.lease?.isLeader());
  }

  /** Notes when the promise of the lease is broken; `advance` fails on it. */
  observe(): void {
    if (this.leaders().length > 1) this.violations.push(`two leaders at ${this.clock.monotonicMs()} ms`);
  }

  async advance(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    do {
      await this.clock.advance(Math.min(100, endMs - this.clock.monotonicMs()));
      this.observe();
      assert.deepEqual(this.violations, []);
    } while (this.clock.monotonicMs() < endMs);
  }

  /** Advances until somebody leads; returns after how long. */
  async untilLeader(limitMs: number): Promise<number> {
    const startMs = this.clock.monotonicMs();
    while (this.leaders().length === 0) {
      assert.ok(this.clock.monotonicMs() - startMs < limitMs, `no leader after ${limitMs} ms`);
      await this.advance(100);
    }
    return this.clock.monotonicMs() - startMs;
  }
}
