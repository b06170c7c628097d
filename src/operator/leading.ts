/** Leader is what the replica does that holds the lease: passes after changes, reports of replicas, answers of DNS. */
import { Loop, type LoopHooks } from '../runtime/control/loop.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import type { EventRecorder } from '../runtime/kube/event-recorder.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import { PublishedNames, type Resolve } from './dns/names.ts';
import type { OperatorCaches } from './inputs/caches.ts';
import { Operator, type OperatorSettings } from './operator.ts';
import { type ReadReport, Replicas } from './replicas.ts';
import { Statuses } from './statuses.ts';
import { DesiredObjectWriter } from './writer.ts';

export interface LeaderDeps {
  readonly client: KubeClient;
  readonly caches: OperatorCaches;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly hooks: LoopHooks;
  readonly settings: OperatorSettings;
  /** Undefined when names are not published. */
  readonly dns:
    | { readonly configMap: { readonly namespace: string; readonly name: string }; readonly resolve: Resolve }
    | undefined;
  readonly readReport: ReadReport;
}

export class Leader {
  readonly #deps: LeaderDeps;
  #hasPassed = false;

  constructor(deps: LeaderDeps) {
    this.#deps = deps;
  }

  /** What is not done yet of what was found at the start. */
  missing(): string[] {
    return this.#hasPassed ? [] : ['first pass'];
  }

  /** Works until the signal is aborted. Rejects only for bugs. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, caches, clock, log, events, dns, readReport, settings } = this.#deps;
    try {
      await caches.synced;
    } catch {
      // The process stops before the caches are filled.
      return;
    }
    const loop: Loop = new Loop({
      clock,
      hooks: this.#deps.hooks,
      pass: async () => {
        const result = await operator.pass(signal);
        this.#hasPassed = true;
        return result;
      },
    });
    const onChange = (): void => loop.touch();
    const replicas: Replicas = new Replicas({
      clock,
      read: readReport,
      pods: () => operator.readyPods(),
      isUrgent: () => operator.hasPending,
      onChange,
    });
    const names =
      dns === undefined
        ? undefined
        : new PublishedNames({
            client,
            clock,
            ...dns,
            current: () => caches.dns?.store.get(`${dns.configMap.namespace}/${dns.configMap.name}`),
            onChange,
          });
    const statuses = new Statuses({ client, clock, events, onDue: onChange });
    const writer = new DesiredObjectWriter(client, caches);
    const operator: Operator = new Operator({
      client,
      caches,
      writer,
      statuses,
      replicas,
      names,
      clock,
      log,
      settings,
    });
    const unsubscribe = caches.subscribe(onChange);
    loop.touch();
    try {
      await Promise.all([loop.run(signal), replicas.run(signal), names?.run(signal)]);
    } finally {
      unsubscribe();
    }
  }
}
