/** Running one part of the controller in a test, against any API server. Not shipped; used by unit and end-to-end tests. */
import { Config } from '../api/config.ts';
import type { ConfigSource } from '../runtime/config/source.ts';
import type { ServerAccess } from '../runtime/kube/access.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { EventRecorder } from '../runtime/kube/event-recorder.ts';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { coreResource, type Resource } from '../runtime/kube/resource.ts';
import { createMetrics } from '../runtime/metrics/metrics.ts';
import { type Clock, systemClock } from '../runtime/process/clock.ts';
import { createLog } from '../runtime/process/log.ts';
import { createControllerCaches } from './loop/caches.ts';
import type { ControlLoop, ControlLoopDeps } from './loop/control-loop.ts';

/** A part that runs. */
export interface RunningControlLoop<P extends ControlLoop> {
  readonly part: P;
  readonly client: KubeClient;
  /** Changes the configuration, as an edit of the file does. */
  configure(feature: object): void;
  /** How many requests that change objects of a kind were answered well, by its plural; of all kinds without one. */
  writes(plural?: string): number;
  /** Stops the part, its caches and its client; rejects when one of them has failed. */
  stop(): Promise<void>;
}

/** What a part is started with. */
export interface PartSetting {
  readonly access: ServerAccess;
  readonly feature?: object;
  readonly clock?: Clock;
}

const writeVerbs: readonly string[] = ['create', 'update', 'patch', 'apply', 'delete'];

/** Starts a part as the leader would, and resolves when it has tried everything that it found. */
export const startControlLoop = async <P extends ControlLoop>(
  { access, feature = {}, clock = systemClock }: PartSetting,
  make: (deps: ControlLoopDeps) => P,
): Promise<RunningControlLoop<P>> => {
  const random = Math.random;
  const log = createLog({ process: 'test', level: 'silent' });
  const writesByPlural = new Map<string, number>();
  const client = createKubeClient({
    access,
    userAgent: 'test',
    // The machine's: time limits of calls must not shrink where polls are made to pass faster.
    clock: systemClock,
    random,
    rateLimit: { perSecond: 10_000, burst: 10_000 },
    onRequest: ({ verb, resource, status }) => {
      if (!writeVerbs.includes(verb) || status >= 300) return;
      const [plural = ''] = resource.split('.');
      writesByPlural.set(plural, (writesByPlural.get(plural) ?? 0) + 1);
    },
  });
  const caches = createControllerCaches({ client, clock, random, onProblem: () => {} });
  const config = new TestConfig(Config.parse({ feature }));
  const events = new EventRecorder({ client, clock, random, controller: 'sallyport.io/test', instance: 'test' });
  const webhook = { host: '127.0.0.1', port: 0 };
  const site = { identity: 'test', namespace: 'sallyport', webhook, webhookUrl: undefined };
  const part = make({ client, caches, config, site, clock, random, log, metrics: createMetrics(), events });
  const [stopCaches, stopPart] = [new AbortController(), new AbortController()];
  const cachesRun = caches.run(stopCaches.signal);
  const partRun = part.run(stopPart.signal);
  const ready = (async () => {
    while (part.missing().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  })();
  await Promise.race([ready, cachesRun, partRun]);
  return {
    part,
    client,
    configure: (next) => config.set(Config.parse({ feature: next })),
    writes: (plural) =>
      plural === undefined
        ? [...writesByPlural.values()].reduce((sum, count) => sum + count, 0)
        : (writesByPlural.get(plural) ?? 0),
    stop: async () => {
      stopPart.abort();
      await partRun;
      stopCaches.abort();
      await cachesRun;
      await client.close();
    },
  };
};

/** The kinds of Kubernetes that the caches read, for an in-memory server. */
export const coreResources: readonly Resource[] = [
  coreResource('nodes', 'Node', false),
  coreResource('namespaces', 'Namespace', false),
  coreResource('pods', 'Pod', true),
];

/** A configuration that a test changes, as an edit of the file does. */
export class TestConfig implements ConfigSource {
  readonly #listeners = new Set<(config: Config) => void>();
  current: Config;

  constructor(current: Config) {
    this.current = current;
  }

  changed(listener: (config: Config) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(config: Config): void {
    this.current = config;
    for (const listener of this.#listeners) listener(config);
  }
}
