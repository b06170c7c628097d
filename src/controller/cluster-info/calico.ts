/**
 * CalicoPools follows Calico's IPPools for as long as the cluster has the kind: it starts when the definition appears,
 * however late, and forgets the pools when it goes.
 */
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { wait } from '../../runtime/process/clock.ts';
import { KindSource, type Reading, type SourceDeps } from './kind-source.ts';

/** The kind that Calico keeps its pools in when it stores them in Kubernetes. */
export const poolResource: Resource = {
  group: 'crd.projectcalico.org',
  version: 'v1',
  plural: 'ippools',
  kind: 'IPPool',
  namespaced: false,
};

/** Where definitions of kinds are. */
export const definitionResource: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};

/** The name of the definition that is waited for. */
export const poolDefinitionName = `${poolResource.plural}.${poolResource.group}`;

/** An IPPool, as far as it is read. */
export interface CalicoPool {
  readonly name: string;
  readonly cidr: string;
}

type PoolObject = KubeObject & { readonly spec?: { readonly cidr?: unknown } };

/** Every wait has a limit; this one only says that the loop looks again once a day. */
const forEverMs = 24 * 60 * 60 * 1000;

export class CalicoPools {
  readonly #deps: SourceDeps;
  readonly #definition: KindSource<string>;
  /** The pools while there is a definition. */
  #pools: KindSource<CalicoPool, PoolObject> | undefined;
  /** Aborted when the definition has come or gone. */
  #turn = new AbortController();

  constructor(deps: SourceDeps) {
    this.#deps = deps;
    const onChange = (): void => {
      this.#turn.abort();
      deps.onChange();
    };
    this.#definition = new KindSource({ ...deps, onChange }, definitionResource, ({ metadata }) => metadata.name, {
      fieldSelector: `metadata.name=${poolDefinitionName}`,
      metadataOnly: true,
    });
  }

  /** The pools; absent without a definition. */
  get reading(): Reading<CalicoPool> {
    const definition = this.#definition.reading;
    if (definition.kind !== 'present') return definition;
    if (definition.values.length === 0) return { kind: 'absent', why: 'not installed' };
    return this.#pools?.reading ?? { kind: 'waiting' };
  }

  /** Follows definition and pools until the signal is aborted. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#definition.run(signal), this.#follow(signal)]);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (await this.#definedIs(true, signal)) {
      const gone = new AbortController();
      const pools = new KindSource(this.#deps, poolResource, projectPool);
      this.#pools = pools;
      const followed = pools.run(AbortSignal.any([signal, gone.signal]));
      const watched = this.#definedIs(false, signal).then(() => gone.abort());
      await Promise.all([followed, watched]);
      this.#pools = undefined;
      this.#deps.onChange();
    }
  }

  /** Resolves with true when the definition is there, or is not, as asked; with false when the signal is aborted. */
  async #definedIs(wanted: boolean, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted && this.#isDefined() !== wanted) {
      this.#turn = new AbortController();
      await wait(this.#deps.clock, forEverMs, AbortSignal.any([signal, this.#turn.signal]));
    }
    return !signal.aborted;
  }

  #isDefined(): boolean {
    const { reading } = this.#definition;
    return reading.kind === 'present' && reading.values.length > 0;
  }
}

// The schema is Calico's, and a pool without a range must not stop the others: an empty text is left out later.
const projectPool = ({ metadata, spec }: PoolObject): CalicoPool => ({
  name: metadata.name,
  cidr: typeof spec?.cidr === 'string' ? spec.cidr : '',
});
