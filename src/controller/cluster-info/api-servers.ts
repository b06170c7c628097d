/**
 * Where the API servers are: the endpoints of Service `kubernetes`. In many clusters they are on machines that are no nodes.
 * Traffic to them belongs to the cluster all the same: a policy that drops what its pods send outside would otherwise cut pods
 * off the API server, and the controller, which has to take the drop back, could be among them.
 */
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { KindSource, type Reading, type SourceDeps } from './kind-source.ts';

/** The kind that lists them. */
export const endpointSliceResource: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
};

type EndpointSliceObject = KubeObject & {
  readonly endpoints?: readonly { readonly addresses?: readonly string[] }[] | null;
};

/** The addresses of one EndpointSlice, ready or not: an API server that starts again stays where it is. */
const projectSlice = ({ endpoints }: EndpointSliceObject): readonly string[] =>
  (endpoints ?? []).flatMap(({ addresses = [] }) => addresses);

/** The addresses of the API servers. */
export class ApiServers {
  readonly #slices: KindSource<readonly string[], EndpointSliceObject>;
  #found: readonly string[] = [];

  constructor(deps: SourceDeps) {
    const scope = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' };
    this.#slices = new KindSource(deps, endpointSliceResource, projectSlice, scope);
  }

  /** The addresses. Those that were found stay while there are none: the only API server takes itself out when it ends. */
  get reading(): Reading<string> {
    const { reading } = this.#slices;
    if (reading.kind !== 'present') return reading;
    const now = reading.values.flat();
    if (now.length > 0) this.#found = now;
    return { kind: 'present', values: this.#found };
  }

  /** Follows them until the signal is aborted. Call it once. */
  run(signal: AbortSignal): Promise<void> {
    return this.#slices.run(signal);
  }
}
