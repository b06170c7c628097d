/** Call is one request of the client before it is sent: a plain value that verbs make and Caller sends. */
import type { Scope } from './client.ts';
import type { Resource } from './resource.ts';
import type { HttpRequest } from './transport.ts';

export interface Call {
  readonly verb: string;
  /** Absent for calls outside the object model. */
  readonly resource: Resource | undefined;
  /** Key of the object, or the path of a raw call; absent for collections. */
  readonly name?: string;
  readonly method: HttpRequest['method'];
  readonly path: string;
  /** Parameters without a value are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** May be repeated although the server may have acted on it. */
  readonly isIdempotent: boolean;
}

/** Returns `plural` or `plural.group`; `raw` for calls outside the object model. */
export function resourceLabel(resource: Resource | undefined): string {
  if (resource === undefined) return 'raw';
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

/** Returns how errors name a call: `update leases.coordination.k8s.io kube-system/x`. */
export function callName(call: Call): string {
  const parts = [call.verb, call.resource === undefined ? undefined : resourceLabel(call.resource), call.name];
  return parts.filter((part) => part !== undefined).join(' ');
}

/** Returns the HTTP request of a call. */
export function requestOf(call: Call, signal: AbortSignal): HttpRequest {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) query.set(name, String(value));
  }
  return {
    what: callName(call),
    method: call.method,
    path: query.size === 0 ? call.path : `${call.path}?${query}`,
    headers: {
      ...call.headers,
      accept: call.accept ?? 'application/json',
      ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
    },
    body: call.body === undefined ? undefined : JSON.stringify(call.body),
    signal,
  };
}

/** Returns the selectors of a scope as query parameters. */
export function selectorsOf(scope: Scope): Pick<Scope, 'labelSelector' | 'fieldSelector'> {
  return { labelSelector: scope.labelSelector, fieldSelector: scope.fieldSelector };
}

/** Returns the Accept header of a scope. A server that cannot reduce a kind to its metadata may send it whole. */
export function acceptOf(scope: Scope, kind: 'PartialObjectMetadata' | 'PartialObjectMetadataList'): string {
  return scope.metadataOnly ? `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json` : 'application/json';
}
