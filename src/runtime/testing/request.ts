/** ApiRequest is an HTTP request as the API server understands it: a verb on a resource. Pure parsing. */
import { apiVersionOf, type Resource } from '../kube/resource.ts';

export interface ApiRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'apply' | 'delete';
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
  readonly isMetadataOnly: boolean;
  readonly contentType: string;
}

/** The parts of an HTTP request that matter here. */
export interface HttpHead {
  readonly method: string;
  readonly url: string;
  readonly accept: string;
  readonly contentType: string;
}

/** Returns what is asked for, or undefined when no known resource is meant. */
export function parseRequest(head: HttpHead, resources: readonly Resource[]): ApiRequest | undefined {
  const { pathname, searchParams: query } = new URL(head.url, 'http://server');
  const parts = pathname.split('/').slice(1).map(decodeURIComponent);
  const [apiVersion, rest] =
    parts[0] === 'api' ? [parts[1], parts.slice(2)] : [parts.slice(1, 3).join('/'), parts.slice(3)];
  const known = resources.filter((resource) => apiVersionOf(resource) === apiVersion);
  // `namespaces/x/pods` is the pods of x, but `namespaces/x/status` is a part of the namespace x.
  const inNamespace = rest[0] === 'namespaces' ? known.find((resource) => resource.plural === rest[2]) : undefined;
  const resource = inNamespace ?? known.find((candidate) => candidate.plural === rest[0]);
  if (resource === undefined) return undefined;
  const [name, subresource] = inNamespace === undefined ? rest.slice(1) : rest.slice(3);
  return {
    verb: verbOf(head, name, query),
    resource,
    namespace: inNamespace === undefined ? undefined : rest[1],
    name,
    subresource,
    query,
    isMetadataOnly: head.accept.includes('as=PartialObjectMetadata'),
    contentType: head.contentType,
  };
}

function verbOf(head: HttpHead, name: string | undefined, query: URLSearchParams): ApiRequest['verb'] {
  switch (head.method) {
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return head.contentType.includes('apply-patch') ? 'apply' : 'patch';
    case 'DELETE':
      return 'delete';
    default:
      if (name !== undefined) return 'get';
      return query.get('watch') === 'true' ? 'watch' : 'list';
  }
}
