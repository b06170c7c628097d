/** The number of matched pods in the status of a policy. It has a field manager of its own, so nobody else's write undoes it. */
import { resourceOf } from '../../api/kinds.ts';
import type { ReconcileResult } from '../../runtime/control/controller.ts';
import { isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';
import type { KeptPolicy } from '../caches.ts';

/** The name under which the number is applied. */
export const matchedPodsManager = 'sallyport-matched-pods';

type StatusObject = KubeObject & { readonly status: { readonly matchedPods: number } };

/** Writes the number where the status says another; a policy that is gone is no fault. */
export const reconcileMatchedPods = async (
  client: KubeClient,
  policy: KeptPolicy | undefined,
  matchedPods: number | undefined,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  if (policy === undefined || matchedPods === undefined) return { kind: 'done' };
  const { identity, status, view } = policy;
  if (identity.isDeleting || status?.matchedPods === matchedPods) return { kind: 'done' };
  const { name, namespace } = identity;
  const object: StatusObject = {
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    status: { matchedPods },
  };
  try {
    await client.applyStatus(resourceOf(view.kind), object, { fieldManager: matchedPodsManager, signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return { kind: 'done' };
};
