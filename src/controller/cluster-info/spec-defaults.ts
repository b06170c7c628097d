/**
 * SpecDefaults makes the EgressClusterInfo and lets its spec follow `feature.egressIgnoreCIDR.autoDetect` of the configuration, as far as
 * nobody else has written it: it is applied without force, and the API server says whose a field is.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../api/config.ts';
import { clusterInfoName, type EgressClusterInfoSpec } from '../../api/egress-cluster-info.ts';
import { resourceOf } from '../../api/kinds.ts';
import { isConflict } from '../../runtime/kube/api-error.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';
import type { CachedClusterInfo } from '../loop/caches.ts';
import type { ControlLoopDeps } from '../loop/control-loop.ts';

/** The name under which the spec is applied. */
export const specManager = 'sallyport-configuration';

const resource = resourceOf('EgressClusterInfo');
type AutoDetectSpec = Pick<EgressClusterInfoSpec, 'autoDetect'>;

/** The spec that the configuration asks for. */
export const specOf = ({ feature }: Config): AutoDetectSpec => {
  const { podCIDR, clusterIP, nodeIP } = feature.egressIgnoreCIDR.autoDetect;
  // In the configuration the empty text means the nodes; in the object it means that nothing is detected.
  return { autoDetect: { podCidrMode: podCIDR === '' ? 'k8s' : podCIDR, clusterIP, nodeIP } };
};

export class SpecDefaults {
  readonly #deps: Pick<ControlLoopDeps, 'client' | 'config' | 'log'>;
  /** What the configuration asked for when it was compared last; a difference that comes later is somebody's edit. */
  #followed: AutoDetectSpec | undefined;

  constructor(deps: Pick<ControlLoopDeps, 'client' | 'config' | 'log'>) {
    this.#deps = deps;
  }

  /** Makes the object if it is missing, and brings its spec in step at the start and when the configuration has changed. */
  async follow(kept: CachedClusterInfo | undefined, signal: AbortSignal): Promise<void> {
    const { client, config, log } = this.#deps;
    const wanted = specOf(config.current);
    if (kept !== undefined && isDeepStrictEqual(this.#followed, wanted)) return;
    // The cache may not show yet what was made a moment ago.
    if (kept === undefined && (await client.get(resource, { name: clusterInfoName }, { signal })) !== undefined) return;
    const found = (kept?.view.spec ?? {}) as Partial<AutoDetectSpec>; // Only compared, never read.
    if (!isDeepStrictEqual(found.autoDetect, wanted.autoDetect)) {
      const object: KubeObject & { readonly spec: AutoDetectSpec } = {
        metadata: { name: clusterInfoName },
        spec: wanted,
      };
      try {
        await client.apply(resource, object, { fieldManager: specManager, force: false, signal });
        const what = kept === undefined ? 'EgressClusterInfo created' : 'spec.autoDetect follows the configuration';
        log.info({ key: clusterInfoName }, what);
      } catch (error) {
        // Somebody else has written it, and what they wrote stays.
        if (!isConflict(error)) throw error;
      }
    }
    this.#followed = wanted;
  }
}
