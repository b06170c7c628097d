/** Reads are the verbs that change nothing: get, and list with pages that all show the instant of the first. */
import { apiVersionOf, refKey } from '../kube/resource.ts';
import { type Answer, failure, gone } from './answer.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';
import type { ApiRequest } from './request.ts';
import { filterOf } from './selector.ts';

/** What is left of a list, frozen at its version. */
interface Remainder {
  readonly version: number;
  readonly objects: readonly StoredObject[];
}

export class Reads {
  readonly #store: ObjectStore;
  readonly #remainderByToken = new Map<string, Remainder>();
  #tokens = 0;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  get(request: ApiRequest): Answer {
    const key = refKey({ name: request.name ?? '', namespace: request.namespace });
    const object = this.#store.read(request.resource, key);
    if (object === undefined) return failure(404, 'NotFound', `${request.resource.plural} "${key}" not found`);
    return { status: 200, body: object };
  }

  /** Answers the first page or, with a continue token, the next one. `isReversed` turns the whole list around. */
  list(request: ApiRequest, isReversed: boolean): Answer {
    const token = request.query.get('continue');
    const remainder = token === null ? this.#wholeList(request, isReversed) : this.#remainderByToken.get(token);
    if (remainder === undefined) return gone;
    const { version, objects } = remainder;
    const limit = Number(request.query.get('limit')) || objects.length;
    const rest = objects.slice(limit);
    const metadata = {
      resourceVersion: String(version),
      ...(rest.length === 0 ? {} : { continue: this.#keep({ version, objects: rest }) }),
    };
    const items = objects.slice(0, limit).map((object) => this.textOf(request, object));
    const kind = request.isMetadataOnly ? 'PartialObjectMetadataList' : `${request.resource.kind}List`;
    const apiVersion = request.isMetadataOnly ? 'meta.k8s.io/v1' : apiVersionOf(request.resource);
    // Put together as text: the texts of the objects exist already, and there may be many.
    const head = JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1);
    return { status: 200, body: `${head},"items":[${items.join(',')}]}` };
  }

  /** Continue tokens that were given out are answered with 410 from now on. */
  forgetPages(): void {
    this.#remainderByToken.clear();
  }

  /** Returns what is sent for an object: all of it, or its metadata. The real server leaves kind out of list items. */
  textOf(request: ApiRequest, object: StoredObject): string {
    if (!request.isMetadataOnly) return this.#store.textOf(object);
    return JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata });
  }

  #wholeList(request: ApiRequest, isReversed: boolean): Remainder {
    const objects = this.#store.list(request.resource).filter(filterOf(request.namespace, request.query));
    return { version: this.#store.version, objects: isReversed ? objects.toReversed() : objects };
  }

  #keep(remainder: Remainder): string {
    this.#tokens += 1;
    const token = `page-${this.#tokens}`;
    this.#remainderByToken.set(token, remainder);
    return token;
  }
}
