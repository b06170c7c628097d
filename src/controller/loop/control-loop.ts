/** ControlLoop is one duty of the controller that runs by itself: a control loop, or the admission server. */
import type { ConfigSource } from '../../runtime/config/source.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import type { EventRecorder } from '../../runtime/kube/event-recorder.ts';
import type { Metrics } from '../../runtime/metrics/metrics.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { ListenOptions } from '../../runtime/serve/listen.ts';
import type { ControllerCaches } from './caches.ts';

/** One duty. Control loops run on the leader only; the admission server runs on every replica. */
export interface ControlLoop {
  readonly name: string;
  /** Works until the signal is aborted, then finishes what it began. Rejects only on a bug. Called once. */
  run(signal: AbortSignal): Promise<void>;
  /** What is not done yet of what was found at the start, in a few words each; empty when the part is ready. */
  missing(): string[];
}

/** Where this process runs and listens. */
export interface ControllerSite {
  /** Unique to this run of the process. */
  readonly identity: string;
  /** The namespace of the lease and of the Secret with the certificates. */
  readonly namespace: string;
  readonly webhook: ListenOptions;
}

/** What every part gets. `caches` may not be synced yet when a part is made; await `caches.synced` in `run`. */
export interface ControlLoopDeps {
  readonly client: KubeClient;
  readonly caches: ControllerCaches;
  readonly config: ConfigSource;
  readonly site: ControllerSite;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly events: EventRecorder;
}
