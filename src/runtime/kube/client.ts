/**
 * KubeClient is the API server as the rest of Sallyport sees it. `createKubeClient` (http-client.ts) is the one
 * implementation; tests run it against the in-memory server in ../testing.
 *
 * Every method fails with an ApiError and with nothing else, except when `signal` is aborted: then it rejects
 * with the signal's reason. The type parameter is the caller's claim about a kind whose schema the server has
 * checked; objects that may be older than the schema belong through an informer's projection.
 */
import type { ApiError } from './api-error.ts';
import type { KubeObject, ObjectRef, Resource } from './resource.ts';

/** What every call accepts. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Limit of the whole call with its retries; 30 s when absent. A watch has no limit but its own. */
  readonly timeoutMs?: number | undefined;
  /** How often a call that may be repeated is repeated; 3 when absent, 0 for callers with a back-off of their own. */
  readonly retries?: number | undefined;
}

/** Which objects a LIST, a WATCH or an informer covers. An absent namespace means all of them. */
export interface Scope {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Ask for PartialObjectMetadata: labels and annotations travel, spec and status do not. */
  readonly metadataOnly?: boolean | undefined;
}

/** How to read a collection. */
export interface ListOptions extends Scope, CallOptions {
  /** Objects per page; 500 when absent. */
  readonly pageSize?: number | undefined;
}

/** One page of a LIST. All pages of one LIST show the same instant, whose version every page carries. */
export interface ListPage<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/** How to follow a collection. */
export interface WatchOptions extends Scope, Pick<CallOptions, 'signal'> {
  /** Events after this version are sent. Absent only with `sendInitialEvents`. */
  readonly resourceVersion?: string | undefined;
  /** Ask for the present objects as ADDED events, ended by a bookmark with `isInitialEnd` (streaming list). */
  readonly sendInitialEvents?: boolean | undefined;
  /** The server ends the watch after this time; 300 s when absent. */
  readonly timeoutSeconds?: number | undefined;
  /** The watch fails with `Timeout` after this long without a byte; 150 s when absent. */
  readonly stallMs?: number | undefined;
}

/** One event of a watch. After ERROR the stream ends. */
export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly isInitialEnd: boolean }
  | { readonly type: 'ERROR'; readonly error: ApiError };

/** How to apply: under which name we own fields, and whether we take them from others. */
export interface ApplyOptions extends CallOptions {
  readonly fieldManager: string;
  /** True when absent: a controller is the authority on the fields it applies. */
  readonly force?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
}

/** What must still hold for a delete to happen; a mismatch is a conflict. */
export interface DeleteOptions extends CallOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan' | undefined;
}

/** A change to send as a patch: a merge patch is an object, a JSON patch a list of operations. */
export type Patch =
  | { readonly kind: 'merge'; readonly value: object }
  | { readonly kind: 'json'; readonly operations: readonly JsonPatchOperation[] };

/** One step of RFC 6902, as far as Kubernetes needs it. */
export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** A call outside the object model: discovery, `/version`, SubjectAccessReview. */
export interface RawRequest extends CallOptions {
  readonly method?: 'GET' | 'POST' | undefined;
  readonly path: string;
  readonly body?: unknown;
  /** More headers, for whom the API server hands the request on to. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface KubeClient {
  /** Returns the object, or undefined when it does not exist. */
  get<T extends KubeObject>(resource: Resource, ref: ObjectRef, options?: CallOptions): Promise<T | undefined>;
  /** Reads a collection page by page, the newest state. A page is read when it is asked for. */
  list<T extends KubeObject>(resource: Resource, options?: ListOptions): AsyncIterable<ListPage<T>>;
  /** Follows a collection until the server ends the stream, the signal is aborted or the connection fails. */
  watch<T extends KubeObject>(resource: Resource, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** Creates; a taken name is `isAlreadyExists`. Not repeated once the server may have acted. */
  create<T extends KubeObject>(resource: Resource, object: T, options?: CallOptions): Promise<T>;
  /** Replaces the object at `metadata.resourceVersion`; a newer one is `isConflict`. For leases and Secrets. */
  update<T extends KubeObject>(resource: Resource, object: T, options?: CallOptions): Promise<T>;
  /** Patches the object, or one subresource of it. Merge patches are idempotent and are repeated, JSON patches are not. */
  patch<T extends KubeObject>(
    resource: Resource,
    ref: ObjectRef,
    patch: Patch,
    options?: CallOptions & { readonly subresource?: 'status' | undefined },
  ): Promise<T>;
  /** Server-side apply: creates the object or sets exactly the given fields. May be called forever with the same value. */
  apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T>;
  /** Server-side apply of the status subresource; the object must exist. */
  applyStatus<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T>;
  /** Deletes; returns false when there was nothing to delete. */
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<boolean>;
  /** Calls any path and returns the parsed JSON answer. The caller parses it further. */
  raw(request: RawRequest): Promise<unknown>;
  /** Breaks running calls and closes all connections. May be called twice. */
  close(): Promise<void>;
}
