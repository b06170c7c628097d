/**
 * Writes are the verbs that change objects: create, update, patch, apply, delete. Each takes a request and a body and
 * returns the answer; the rules are those of the real server as far as clients can see them.
 */
import type { JsonPatchOperation } from '../kube/client.ts';
import { type KubeObject, keyOf, refKey } from '../kube/resource.ts';
import { type Answer, failure } from './answer.ts';
import { applyPatch, conflictsOf, jsonPatch, mergePatch } from './merge.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';
import type { ApiRequest } from './request.ts';

export class Writes {
  readonly #store: ObjectStore;
  /** resource, object and manager -> what it applied last; the managedFields of this server */
  readonly #appliedBy = new Map<string, unknown>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Carries out a write. `body` is the parsed JSON of the request. */
  answer(request: ApiRequest, body: unknown): Answer {
    if (request.verb === 'delete') return this.#delete(request, body);
    if (request.verb === 'patch') return this.#patch(request, body);
    if (!isObject(body)) return failure(400, 'BadRequest', 'the body is not an object with a name');
    const object = inNamespaceOf(request, body);
    switch (request.verb) {
      case 'create':
        return this.#create(request, object);
      case 'update':
        return this.#update(request, object);
      default:
        return this.#apply(request, object);
    }
  }

  #create(request: ApiRequest, object: KubeObject): Answer {
    const key = keyOf(object);
    if (this.#store.read(request.resource, key) !== undefined) {
      return failure(409, 'AlreadyExists', `${request.resource.plural} "${key}" already exists`);
    }
    return { status: 201, body: this.#store.write(request.resource, partOf(request, undefined, object)) };
  }

  #update(request: ApiRequest, object: KubeObject): Answer {
    const live = this.#live(request);
    if (live === undefined) return notFound(request);
    const version = object.metadata.resourceVersion;
    if (version !== undefined && version !== live.metadata.resourceVersion) return conflict(request);
    return { status: 200, body: this.#store.write(request.resource, partOf(request, live, object)) };
  }

  #patch(request: ApiRequest, body: unknown): Answer {
    const live = this.#live(request);
    if (live === undefined) return notFound(request);
    try {
      const patched = request.contentType.includes('json-patch')
        ? jsonPatch(live, body as JsonPatchOperation[]) // Test input: a wrong patch fails inside.
        : mergePatch(live, body);
      if (!isObject(patched)) return failure(422, 'Invalid', 'the patch leaves no object');
      if (patched.metadata.resourceVersion !== live.metadata.resourceVersion) return conflict(request);
      return { status: 200, body: this.#store.write(request.resource, partOf(request, live, patched)) };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return failure(422, 'Invalid', error.message);
    }
  }

  #apply(request: ApiRequest, object: KubeObject): Answer {
    const manager = request.query.get('fieldManager');
    if (!manager) return failure(400, 'BadRequest', 'fieldManager is required for apply patch');
    const live = this.#live(request);
    if (live === undefined && request.subresource !== undefined) return notFound(request);
    const record = [request.resource.plural, request.subresource, keyOf(object), manager].join(' ');
    const before = this.#appliedBy.get(record);
    const conflicts = request.query.get('force') === 'true' ? [] : conflictsOf(live, before, object);
    if (conflicts.length > 0) return failure(409, 'Conflict', `Apply failed with conflicts: ${conflicts.join(', ')}`);
    const applied = applyPatch(live ?? {}, before, object);
    if (!isObject(applied)) return failure(400, 'BadRequest', 'the body is not an object with a name');
    if (request.query.get('dryRun') === 'All') return { status: 200, body: applied };
    this.#appliedBy.set(record, object);
    const status = live === undefined ? 201 : 200;
    return { status, body: this.#store.write(request.resource, partOf(request, live, applied)) };
  }

  #delete(request: ApiRequest, body: unknown): Answer {
    const live = this.#live(request);
    if (live === undefined) return notFound(request);
    const preconditions = isFields(body) && isFields(body.preconditions) ? body.preconditions : {};
    const { uid = live.metadata.uid, resourceVersion = live.metadata.resourceVersion } = preconditions;
    if (uid !== live.metadata.uid || resourceVersion !== live.metadata.resourceVersion) return conflict(request);
    return { status: 200, body: this.#store.delete(request.resource, keyOf(live)) };
  }

  #live(request: ApiRequest): StoredObject | undefined {
    return this.#store.read(request.resource, refKey({ name: request.name ?? '', namespace: request.namespace }));
  }
}

type WithStatus = KubeObject & { readonly status?: unknown };

/** The status subresource changes nothing but status; every other write leaves status as it is, or absent. */
function partOf(request: ApiRequest, live: WithStatus | undefined, next: WithStatus): WithStatus {
  if (live !== undefined && request.subresource === 'status') return { ...live, status: next.status };
  const { status: _ignored, ...object } = next;
  return live?.status === undefined ? object : { ...object, status: live.status };
}

function inNamespaceOf(request: ApiRequest, object: KubeObject): KubeObject {
  if (request.namespace === undefined) return object;
  return { ...object, metadata: { ...object.metadata, namespace: request.namespace } };
}

function notFound(request: ApiRequest): Answer {
  return failure(404, 'NotFound', `${request.resource.plural} "${request.name}" not found`);
}

function conflict(request: ApiRequest): Answer {
  return failure(409, 'Conflict', `${request.resource.plural} "${request.name}": the object has been modified`);
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isObject(value: unknown): value is KubeObject {
  return isFields(value) && isFields(value.metadata) && typeof value.metadata.name === 'string';
}
