/**
 * createKubeClient is the KubeClient that production uses: each verb of the API as one Call, sent by Caller.
 */
import { parseJson, parseObject, parsePage } from './answer.ts';
import { isNotFound } from './api-error.ts';
import { acceptOf, type Call, callName, selectorsOf } from './call.ts';
import { Caller, type KubeClientOptions } from './caller.ts';
import type {
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  KubeClient,
  ListOptions,
  ListPage,
  Patch,
  RawRequest,
  WatchEvent,
  WatchOptions,
} from './client.ts';
import { apiVersionOf, type KubeObject, type ObjectRef, pathOf, type Resource, refKey } from './resource.ts';
import { readWatch } from './watch-stream.ts';

const defaultPageSize = 500;
const defaultWatchSeconds = 300;
/** A watch may last, but its answer must begin in this time. */
const watchStartMs = 30_000;

/** Makes a client. Nothing is sent before the first call. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  return new HttpClient(options);
}

class HttpClient implements KubeClient {
  readonly #options: KubeClientOptions;
  readonly #caller: Caller;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#caller = new Caller(options);
  }

  get<T extends KubeObject>(resource: Resource, ref: ObjectRef, options?: CallOptions): Promise<T | undefined> {
    const call: Call = { verb: 'get', method: 'GET', ...addressOf(resource, ref), isIdempotent: true };
    return absentAs(undefined, this.#object<T>(call, options));
  }

  async *list<T extends KubeObject>(resource: Resource, options: ListOptions = {}): AsyncIterable<ListPage<T>> {
    let token: string | undefined;
    do {
      const call: Call = {
        verb: 'list',
        resource,
        method: 'GET',
        path: pathOf(resource, { namespace: options.namespace }),
        // No resourceVersion: the newest state. With `0` the server would ignore the page size (API concepts, 2026).
        query: { ...selectorsOf(options), limit: options.pageSize ?? defaultPageSize, continue: token },
        accept: acceptOf(options, 'PartialObjectMetadataList'),
        isIdempotent: true,
      };
      const { page, next } = parsePage<T>(callName(call), await this.#caller.send(call, options));
      token = next;
      yield page;
    } while (token !== undefined);
  }

  watch<T extends KubeObject>(resource: Resource, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    const call: Call = {
      verb: 'watch',
      resource,
      method: 'GET',
      path: pathOf(resource, { namespace: options.namespace }),
      query: {
        ...selectorsOf(options),
        watch: true,
        allowWatchBookmarks: true,
        timeoutSeconds: options.timeoutSeconds ?? defaultWatchSeconds,
        resourceVersion: options.resourceVersion,
        ...(options.sendInitialEvents ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : {}),
      },
      accept: acceptOf(options, 'PartialObjectMetadata'),
      isIdempotent: true,
    };
    return readWatch<T>({
      what: callName(call),
      clock: this.#options.clock,
      open: (signal) => this.#caller.open(call, watchStartMs, signal),
      signal: options.signal,
      stallMs: options.stallMs,
    });
  }

  create<T extends KubeObject>(resource: Resource, object: T, options?: CallOptions): Promise<T> {
    const path = pathOf(resource, { namespace: object.metadata.namespace });
    return this.#object<T>(
      { verb: 'create', method: 'POST', ...bodyOf(resource, object), path, isIdempotent: false },
      options,
    );
  }

  update<T extends KubeObject>(resource: Resource, object: T, options?: CallOptions): Promise<T> {
    return this.#object<T>(
      { verb: 'update', method: 'PUT', ...bodyOf(resource, object), isIdempotent: false },
      options,
    );
  }

  patch<T extends KubeObject>(
    resource: Resource,
    ref: ObjectRef,
    patch: Patch,
    options?: CallOptions & { readonly subresource?: 'status' | undefined },
  ): Promise<T> {
    const isMerge = patch.kind === 'merge';
    const call: Call = {
      verb: 'patch',
      method: 'PATCH',
      ...addressOf(resource, ref, options?.subresource),
      body: isMerge ? patch.value : patch.operations,
      contentType: isMerge ? 'application/merge-patch+json' : 'application/json-patch+json',
      isIdempotent: isMerge,
    };
    return this.#object<T>(call, options);
  }

  apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    return this.#apply(resource, object, options, undefined);
  }

  applyStatus<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    return this.#apply(resource, object, options, 'status');
  }

  delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<boolean> {
    const { uid, resourceVersion, propagation } = options;
    const call: Call = {
      verb: 'delete',
      method: 'DELETE',
      ...addressOf(resource, ref),
      body: { preconditions: { uid, resourceVersion }, propagationPolicy: propagation },
      // Without a uid a repeated delete could hit an object that was made anew in between.
      isIdempotent: uid !== undefined,
    };
    const deleted = this.#caller.send(call, options).then(() => true);
    return absentAs(false, deleted);
  }

  async raw({ method = 'GET', path, body, headers, ...options }: RawRequest): Promise<unknown> {
    const isIdempotent = method === 'GET';
    const call: Call = { verb: 'raw', resource: undefined, name: path, method, path, body, headers, isIdempotent };
    return parseJson(callName(call), await this.#caller.send(call, options));
  }

  close(): Promise<void> {
    return this.#caller.close();
  }

  #apply<T extends KubeObject>(
    resource: Resource,
    object: T,
    options: ApplyOptions,
    subresource: 'status' | undefined,
  ): Promise<T> {
    const call: Call = {
      verb: 'apply',
      method: 'PATCH',
      ...bodyOf(resource, object, subresource),
      query: {
        fieldManager: options.fieldManager,
        force: options.force ?? true,
        dryRun: options.dryRun ? 'All' : undefined,
      },
      // JSON is YAML, and this media type is the one that every version understands.
      contentType: 'application/apply-patch+yaml',
      isIdempotent: true,
    };
    return this.#object<T>(call, options);
  }

  async #object<T extends KubeObject>(call: Call, options: CallOptions | undefined): Promise<T> {
    return parseObject<T>(callName(call), await this.#caller.send(call, options));
  }
}

function addressOf(resource: Resource, ref: ObjectRef, subresource?: string): Pick<Call, 'resource' | 'name' | 'path'> {
  const path = pathOf(resource, { ...ref, ...(subresource === undefined ? {} : { subresource }) });
  return { resource, name: refKey(ref), path };
}

/** Objects that came out of a LIST have lost apiVersion and kind; the server wants them back. */
function bodyOf(
  resource: Resource,
  object: KubeObject,
  subresource?: string,
): Pick<Call, 'resource' | 'name' | 'path' | 'body'> {
  const body = { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
  return { ...addressOf(resource, object.metadata, subresource), body };
}

async function absentAs<A, V>(absent: A, call: Promise<V>): Promise<A | V> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return absent;
    throw error;
  }
}
