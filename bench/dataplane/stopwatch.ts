/** Times of one kind of work: by the wall clock, and as processor time of this process and of programs it ran. */
import { readFileSync } from 'node:fs';

/** USER_HZ of proc(5), the unit of the times of ended children; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

export class Stopwatch {
  readonly #wallMs: number[] = [];
  #cpuMs = 0;

  /** Does the work and notes what it took. */
  async time<T>(work: () => T | Promise<T>): Promise<T> {
    const start = performance.now();
    const cpuStart = cpuNowMs();
    const value = await work();
    this.#wallMs.push(performance.now() - start);
    this.#cpuMs += cpuNowMs() - cpuStart;
    return value;
  }

  /** The time within which a share of the calls ended. */
  wallMs(share: number): number {
    const sorted = this.#wallMs.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  }

  /** Processor time of one call, on average: that of children has steps of 10 ms. */
  cpuMs(): number {
    return this.#cpuMs / this.#wallMs.length;
  }
}

function cpuNowMs(): number {
  const { user, system } = process.cpuUsage();
  // After the name, which may hold anything and ends with the last parenthesis, come the fields from the third one on.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const [childUser, childSystem] = [Number(fields[13]), Number(fields[14])];
  return (user + system) / 1000 + ((childUser + childSystem) * 1000) / ticksPerSecond;
}
