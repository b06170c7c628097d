/**
 * Heartbeats tells how long each agent has been silent. Only our own monotonic clock counts: the time stamp of an agent
 * is compared with the one before, never with our date, so a node with a wrong clock neither loses its EIPs nor keeps
 * them when it is dead. Silence that may be our own does not count. Agents that watch each other have more time: they act
 * by themselves, sooner and with better knowledge, and one that is only being updated should find everything as it was.
 */

import type { TunnelView } from '../../core/cluster/view.ts';
import { isSameSet } from '../../core/values/equality.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { CachedTunnel, ControllerCache } from '../loop/caches.ts';

/** Where heartbeats are seen. */
export interface HeartbeatSource {
  readonly tunnels: Pick<ControllerCache<CachedTunnel>, 'subscribe'>;
  /** When the cache of tunnels last lost its connection, on the monotonic clock. */
  disconnectedAtMs(cache: 'tunnels'): number | undefined;
}

/** What is known about the agent of one node. */
interface Sign {
  readonly time: string;
  readonly seenAtMs: number;
  /** Whether other agents watch it: it reports the electorate that it goes by. */
  readonly isWatched: boolean;
}

/** The signs of life of all agents, from the moment it is made. Make it once per process, before the caches run. */
export class Heartbeats {
  readonly #source: HeartbeatSource;
  readonly #clock: Clock;
  /** node -> its last sign of life */
  readonly #signByNode = new Map<string, Sign>();
  #lookedAtMs: number | undefined;
  #listeningSinceMs = Number.NEGATIVE_INFINITY;
  #silent: ReadonlySet<string> = new Set();

  constructor(source: HeartbeatSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    source.tunnels.subscribe((change) => {
      if (change.kind === 'delete') this.#signByNode.delete(change.key);
      else this.#note(change.key, change.value);
    });
  }

  /** How the heartbeat of a node stood when `look` was last called. */
  stateOf(node: string): TunnelView['heartbeat'] {
    if (!this.#signByNode.has(node)) return 'never';
    return this.#silent.has(node) ? 'stale' : 'fresh';
  }

  /** The nodes that were silent when `look` was last called; the same set until one comes or goes. */
  get silent(): ReadonlySet<string> {
    return this.#silent;
  }

  /**
   * Looks who has been silent for longer than `timeoutMs` and returns whether that is anybody else than before; agents that
   * others watch have `graceMs` at the least. Call it every `periodMs`: a look that comes much later means that this process
   * did not run, and so could not listen.
   */
  look(timeoutMs: number, periodMs: number, graceMs = 0): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#lookedAtMs !== undefined && nowMs - this.#lookedAtMs > 2 * periodMs) this.#listeningSinceMs = nowMs;
    this.#lookedAtMs = nowMs;
    const sinceMs = Math.max(
      this.#listeningSinceMs,
      this.#source.disconnectedAtMs('tunnels') ?? this.#listeningSinceMs,
    );
    const silent = new Set<string>();
    for (const [node, { seenAtMs, isWatched }] of this.#signByNode) {
      // Who was given up before is taken back by a new sign only, not by a disturbance on our side.
      const heardAtMs = this.#silent.has(node) ? seenAtMs : Math.max(seenAtMs, sinceMs);
      if (nowMs - heardAtMs > (isWatched ? Math.max(timeoutMs, graceMs) : timeoutMs)) silent.add(node);
    }
    if (isSameSet(silent, this.#silent)) return false;
    this.#silent = silent;
    return true;
  }

  #note(node: string, { view, status }: CachedTunnel): void {
    const { lastHeartbeatTime: time, phase } = status ?? {};
    if (!time) {
      this.#signByNode.delete(node);
      return;
    }
    const known = this.#signByNode.get(node);
    if (known?.time === time) return;
    // Found at the start with an agent that was given up already: a restart must not bring it back to life.
    const isGivenUp = known === undefined && phase === 'HeartbeatTimeout';
    const seenAtMs = isGivenUp ? Number.NEGATIVE_INFINITY : this.#clock.monotonicMs();
    this.#signByNode.set(node, { time, seenAtMs, isWatched: view.electorate !== undefined });
    if (isGivenUp) this.#silent = new Set([...this.#silent, node]);
  }
}
