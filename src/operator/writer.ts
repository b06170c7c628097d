/**
 * DesiredObjectWriter brings objects to what they should be: it applies what differs and nothing else, takes nothing from others, and
 * removes what we made and is wanted no longer. It may be asked for the same for ever.
 */
import { isDeepStrictEqual } from 'node:util';
import { operatorName } from '../api/names.ts';
import { isInvalid } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { type KubeObject, keyOf, refOf } from '../runtime/kube/resource.ts';
import { alike, isMet } from './difference.ts';
import type { OperatorCaches } from './inputs/caches.ts';
import { findMade } from './inputs/caches.ts';
import { type DesiredObject, isOurs, type MadeKind, resources } from './objects/kind.ts';

/** What became of an object. `foreign`: somebody else has one of that name, and it is left as it is. */
export type Brought = 'same' | 'written' | 'foreign';

interface LastWrite {
  readonly wanted: DesiredObject['object'];
  /** What the server made of it, as far as it is ours: quantities, say, come back in another spelling. */
  readonly answer: unknown;
}

export class DesiredObjectWriter {
  readonly #client: KubeClient;
  readonly #caches: OperatorCaches;
  /** kind and key -> our last write, until the object is gone */
  readonly #memories = new Map<string, LastWrite>();

  constructor(client: KubeClient, caches: OperatorCaches) {
    this.#client = client;
    this.#caches = caches;
    for (const [kind, ofKind] of Object.entries(caches.made)) {
      for (const cache of ofKind) {
        cache.subscribe((change) => {
          if (change.kind === 'delete') this.#memories.delete(`${kind} ${change.key}`);
        });
      }
    }
  }

  /** Makes the object so. Rejects with an ApiError when the server refuses or cannot be reached. */
  async bring({ kind, object }: DesiredObject, signal: AbortSignal): Promise<Brought> {
    const key = keyOf(object);
    const memoryKey = `${kind} ${key}`;
    const actual = findMade(this.#caches, kind, key);
    const memory = this.#memories.get(memoryKey);
    const isAsBefore = memory !== undefined && isDeepStrictEqual(memory.wanted, object);
    // The cache has not seen yet what we wrote.
    if (actual === undefined && isAsBefore) return 'same';
    if (actual !== undefined) {
      if (!belongsToUs(actual, object)) return 'foreign';
      if (isMet(actual, object)) return 'same';
      if (isAsBefore && isDeepStrictEqual(alike(actual, object), memory.answer)) return 'same';
    } else if (kind !== 'endpointSlices') {
      // The caches hold only what carries our label.
      const existing = await this.#client.get(resources[kind], object.metadata, { signal });
      if (existing !== undefined && !belongsToUs(existing, object)) return 'foreign';
    }
    const answer = await this.#write(kind, object, signal);
    this.#memories.set(memoryKey, { wanted: object, answer: alike(answer, object) });
    return 'written';
  }

  /**
   * Applies, and where that cannot undo what others did replaces: ports of a Service are told apart by their numbers, so a
   * port that somebody has changed stays beside the one that we apply, or makes it invalid.
   */
  async #write(kind: MadeKind, object: DesiredObject['object'], signal: AbortSignal): Promise<KubeObject> {
    const apply = () => this.#client.apply(resources[kind], object, { fieldManager: operatorName, signal });
    if (kind !== 'services') return apply();
    const replace = () =>
      this.#client.patch(resources[kind], object.metadata, { kind: 'merge', value: { spec: object.spec } }, { signal });
    try {
      const answer = await apply();
      return isMet(answer, object) ? answer : await replace();
    } catch (error) {
      if (!isInvalid(error)) throw error;
      return replace();
    }
  }

  /** Our objects of a kind that are there and not in `wanted`. */
  surplus(kind: MadeKind, wanted: ReadonlySet<string>): KubeObject[] {
    return this.#caches.made[kind].flatMap(({ store }) =>
      [...store.values()].filter(
        (object) => isOurs(object) && !wanted.has(keyOf(object)) && object.metadata.deletionTimestamp === undefined,
      ),
    );
  }

  /** Removes an object of ours; one that was replaced meanwhile stays. */
  async remove(kind: MadeKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    const { uid } = object.metadata;
    await this.#client.delete(resources[kind], refOf(keyOf(object)), {
      ...(uid === undefined ? {} : { uid }),
      propagation: 'Background',
      signal,
    });
  }
}

/**
 * Ours is what was made for the same object: its label may be taken off by accident, and an owner that was made anew has
 * another uid. What was made for another object is not, even if it carries our label.
 */
const belongsToUs = (actual: KubeObject, wanted: KubeObject): boolean => {
  const [owner] = wanted.metadata.ownerReferences ?? [];
  const holder = actual.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return holder === undefined ? isOurs(actual) : holder.kind === owner?.kind && holder.name === owner.name;
};
