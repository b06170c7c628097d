/**
 * KindSource follows a kind that the cluster may not have, or that we may not read. It says which of these is the case;
 * an informer alone cannot tell a collection that it has not read yet from one that is not there.
 */
import { isForbidden, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient, Scope } from '../../runtime/kube/client.ts';
import { Informer, type InformerProblem } from '../../runtime/kube/informer.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { messageOf } from '../../runtime/process/bug.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';

/** What a source says now. A source that has once been read keeps its values while the server is away. */
export type Reading<T> =
  /** The server has not answered yet. */
  | { readonly kind: 'waiting' }
  /** There is no such kind, or it may not be read; `why` says which in a few words. */
  | { readonly kind: 'absent'; readonly why: string }
  | { readonly kind: 'present'; readonly values: readonly T[] };

/** What every source needs. */
export interface SourceDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Called after every change of the reading. */
  readonly onChange: () => void;
}

export class KindSource<T, O extends KubeObject = KubeObject> {
  readonly #informer: Informer<T, never, O>;
  readonly #deps: SourceDeps;
  readonly #plural: string;
  #absence: string | undefined;

  /** `project` must be total: it gets whatever the server has. */
  constructor(deps: SourceDeps, resource: Resource, project: (object: O) => T, scope: Scope = {}) {
    const { client, clock, random, onChange } = deps;
    this.#deps = deps;
    this.#plural = resource.plural;
    const onProblem = (problem: InformerProblem): void => this.#note(problem);
    this.#informer = new Informer({ client, clock, random, resource, project, scope, onProblem });
    this.#informer.subscribe(onChange);
    // An empty collection brings no change, but its reading has changed. The end of run() is no news.
    this.#informer.synced.then(onChange, () => {});
  }

  get reading(): Reading<T> {
    if (this.#informer.isSynced) return { kind: 'present', values: [...this.#informer.store.values()] };
    return this.#absence === undefined ? { kind: 'waiting' } : { kind: 'absent', why: this.#absence };
  }

  /** Follows the kind until the signal is aborted; asks again, ever less often, while it is not there. Call it once. */
  run(signal: AbortSignal): Promise<void> {
    return this.#informer.run(signal);
  }

  #note({ kind, error }: InformerProblem): void {
    const absence = isNotFound(error) ? 'not served' : isForbidden(error) ? 'reading is forbidden' : undefined;
    const level = absence === undefined ? 'warn' : 'debug';
    this.#deps.log[level]({ reason: kind }, `cannot follow ${this.#plural}: ${messageOf(error)}`);
    if (absence === undefined || absence === this.#absence) return;
    this.#absence = absence;
    this.#deps.onChange();
  }
}
