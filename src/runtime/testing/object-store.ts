/**
 * ObjectStore is the state of the in-memory API server: objects, one version counter for all of them, and the history
 * that watches replay. Objects are never changed in place, so a reader may keep what it got.
 */
import { apiVersionOf, type KubeObject, keyOf, pathOf, type Resource } from '../kube/resource.ts';

/** An object as the server holds it. */
export type StoredObject = KubeObject & Readonly<Record<string, unknown>>;

/** One step of the history. `previous` is absent for ADDED. */
export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Path of the collection, which names the kind. */
  readonly collection: string;
  readonly object: StoredObject;
  readonly previous?: StoredObject;
}

export class ObjectStore {
  readonly #now: () => Date;
  /** path of the collection -> key -> object */
  readonly #collections = new Map<string, Map<string, StoredObject>>();
  readonly #textByObject = new WeakMap<StoredObject, string>();
  readonly #listeners = new Set<(change: Change) => void>();
  #history: Change[] = [];
  #version = 1;
  /** Changes up to this version are forgotten. */
  #compactedAt = 1;
  #uids = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  get version(): number {
    return this.#version;
  }

  read(resource: Resource, key: string): StoredObject | undefined {
    return this.#collections.get(pathOf(resource))?.get(key);
  }

  /** Returns the objects of a kind in the order of their keys, as etcd does. */
  list(resource: Resource): StoredObject[] {
    const entries = [...(this.#collections.get(pathOf(resource))?.entries() ?? [])];
    return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** Creates or replaces. A write without a difference changes nothing and makes no version. */
  write(resource: Resource, object: KubeObject): StoredObject {
    const key = keyOf(object);
    const previous = this.read(resource, key);
    const next = this.#complete(resource, object, previous);
    if (previous !== undefined) {
      if (sameButVersion(previous, next)) return previous;
      if (next.metadata.deletionTimestamp !== undefined && !next.metadata.finalizers?.length) {
        return this.#remove(resource, key, next);
      }
    }
    this.#version += 1;
    const stored = withVersion(next, this.#version);
    this.#collection(resource).set(key, stored);
    this.#record({
      version: this.#version,
      type: previous === undefined ? 'ADDED' : 'MODIFIED',
      collection: pathOf(resource),
      object: stored,
      ...(previous === undefined ? {} : { previous }),
    });
    return stored;
  }

  /** Deletes, or marks as being deleted when finalizers are left. Returns undefined when there is no such object. */
  delete(resource: Resource, key: string): StoredObject | undefined {
    const object = this.read(resource, key);
    if (object === undefined) return undefined;
    if (!object.metadata.finalizers?.length) return this.#remove(resource, key, object);
    const deletionTimestamp = object.metadata.deletionTimestamp ?? this.#timestamp();
    return this.write(resource, { ...object, metadata: { ...object.metadata, deletionTimestamp } });
  }

  /** Returns the changes of a kind after a version, or undefined when they are forgotten. */
  changesAfter(resource: Resource, version: number): Change[] | undefined {
    if (version < this.#compactedAt) return undefined;
    return this.#history.filter((change) => change.version > version && change.collection === pathOf(resource));
  }

  /** Forgets the history: watches from older versions get 410. */
  compact(): void {
    this.#history = [];
    this.#compactedAt = this.#version;
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the JSON text of a stored object; it is made once. */
  textOf(object: StoredObject): string {
    const known = this.#textByObject.get(object);
    if (known !== undefined) return known;
    const text = JSON.stringify(object);
    this.#textByObject.set(object, text);
    return text;
  }

  #remove(resource: Resource, key: string, last: StoredObject): StoredObject {
    const previous = this.read(resource, key) ?? last;
    this.#version += 1;
    const object = withVersion(last, this.#version);
    this.#collection(resource).delete(key);
    this.#record({ version: this.#version, type: 'DELETED', collection: pathOf(resource), object, previous });
    return object;
  }

  #complete(resource: Resource, object: KubeObject, previous: StoredObject | undefined): StoredObject {
    const isNewSpec = previous === undefined || !sameSpec(previous, object);
    const generation = (previous?.metadata.generation ?? 0) + (isNewSpec ? 1 : 0);
    return {
      ...object,
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: {
        ...object.metadata,
        uid: previous?.metadata.uid ?? this.#nextUid(),
        creationTimestamp: previous?.metadata.creationTimestamp ?? this.#timestamp(),
        generation,
      },
    };
  }

  #nextUid(): string {
    this.#uids += 1;
    return `00000000-0000-4000-8000-${String(this.#uids).padStart(12, '0')}`;
  }

  #timestamp(): string {
    return this.#now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
  }

  #collection(resource: Resource): Map<string, StoredObject> {
    const path = pathOf(resource);
    const collection = this.#collections.get(path) ?? new Map<string, StoredObject>();
    this.#collections.set(path, collection);
    return collection;
  }

  #record(change: Change): void {
    this.#history.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

function withVersion(object: StoredObject, version: number): StoredObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

function sameButVersion(a: StoredObject, b: StoredObject): boolean {
  return JSON.stringify(withVersion(a, 0)) === JSON.stringify(withVersion(b, 0));
}

/** Everything but metadata and status counts for the generation, as in the real server. */
function sameSpec(a: KubeObject, b: KubeObject): boolean {
  const specOf = (object: KubeObject) =>
    JSON.stringify({ ...object, metadata: undefined, status: undefined, apiVersion: undefined, kind: undefined });
  return specOf(a) === specOf(b);
}
