/** Brings the slices of one policy to where they should be: pack (pure), write what differs, wait until it is seen. */

import type { PolicyKey, PolicyView } from '../../core/cluster/view.ts';
import type { Endpoint } from '../../core/slices/endpoints.ts';
import { packSlices, type Slice, type SliceChanges } from '../../core/slices/slices.ts';
import type { ReconcileResult } from '../../runtime/control/controller.ts';
import { ApiError, isConflict, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { keyOf, refKey } from '../../runtime/kube/resource.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { CachedSlice } from '../loop/caches.ts';
import type { SliceIndex, Write } from './known-slices.ts';
import { isMarkedFor, sliceObject, sliceOf, slicePrefixOf, sliceResourceOf } from './slice-object.ts';

/** The name under which slices are applied. */
export const fieldManager = 'sallyport-slices';

/** How long a write may take to come back through the watch. A watch that is being opened again takes about a second. */
const shownLimitMs = 2_000;

/** What the work needs. */
export interface SlicesDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
}

/** The slices of one policy as they are, and what they should list. */
export interface SlicesOfPolicy {
  readonly key: PolicyKey;
  /** Undefined when it is gone; then its slices go. */
  readonly policy: PolicyView | undefined;
  readonly existing: readonly CachedSlice[];
  readonly wanted: readonly Endpoint[];
  /** The most endpoints in one slice. */
  readonly limit: number;
}

/** What has to be written and removed. Slices whose owner or label somebody changed are written again. Pure. */
export const changesOf = ({ policy, existing, wanted, limit }: Omit<SlicesOfPolicy, 'key'>): SliceChanges => {
  if (policy === undefined) return { write: [], remove: existing.map(({ identity }) => identity.name) };
  const { write, remove } = packSlices(slicePrefixOf(policy), existing.map(sliceOf), wanted, limit);
  const touched = new Set([...write.map(({ name }) => name), ...remove]);
  const unmarked = existing.filter((slice) => !touched.has(slice.identity.name) && !isMarkedFor(slice, policy));
  return { write: [...write, ...unmarked.map(sliceOf)], remove };
};

/** Writes the changes. Ends when the caches show them, or asks to look again when they do not in time. */
export const reconcileSlices = async (
  { client, clock, log }: SlicesDeps,
  known: SliceIndex,
  state: SlicesOfPolicy,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const { key, policy, existing } = state;
  const { write, remove } = changesOf(state);
  if (write.length + remove.length === 0) return { kind: 'done' };
  const written: Write[] = [];
  let isShown = false;
  try {
    // Written before removed: a pod that moves to another slice is listed twice for a moment, rather than not at all.
    if (policy !== undefined) {
      for (const slice of write) written.push(await applySlice(client, policy, slice, signal));
    }
    for (const { identity } of existing.filter(({ identity: { name } }) => remove.includes(name))) {
      written.push(...(await removeSlice(client, identity, signal)));
    }
    log.debug({ policy: key, count: written.length }, 'slices written');
  } catch (error) {
    // The policy goes with its namespace, and that is another change.
    if (isNamespaceGone(error)) return { kind: 'done' };
    throw error;
  } finally {
    // Also after a failure: the next try must not pack from what was before the writes that succeeded.
    isShown = await known.shown(written, clock, shownLimitMs, signal);
  }
  return isShown ? { kind: 'done' } : { kind: 'requeue', afterMs: 1 };
};

const applySlice = async (
  client: KubeClient,
  policy: PolicyView,
  slice: Slice,
  signal: AbortSignal,
): Promise<Write> => {
  const options = { fieldManager, signal };
  const { metadata } = await client.apply(sliceResourceOf(policy.kind), sliceObject(policy, slice), options);
  return { key: keyOf({ metadata }), uid: metadata.uid ?? '', generation: metadata.generation ?? 0 };
};

/** Removes the slice that the caches show. One that was changed in the meantime stays, and the caches will tell of it. */
const removeSlice = async (
  client: KubeClient,
  identity: CachedSlice['identity'],
  signal: AbortSignal,
): Promise<Write[]> => {
  const { name, namespace, uid, resourceVersion } = identity;
  const resource = sliceResourceOf(namespace === undefined ? 'EgressClusterPolicy' : 'EgressPolicy');
  try {
    await client.delete(resource, { name, namespace }, { uid, resourceVersion, signal });
    return [{ key: refKey(identity), uid, generation: 'gone' }];
  } catch (error) {
    if (isConflict(error)) return [];
    throw error;
  }
};

const isNamespaceGone = (error: unknown): boolean =>
  isNotFound(error) ||
  (error instanceof ApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating'));
