/**
 * The parse boundary: bytes of the API server become objects here and nowhere else. The shape around the objects is
 * checked; the objects themselves were checked by the server against the schema of their kind.
 */
import { ApiError } from './api-error.ts';
import type { ListPage, WatchEvent } from './client.ts';
import type { KubeObject } from './resource.ts';
import { eventError } from './status.ts';

type AnswerFields = Readonly<Record<string, unknown>>;

/** The annotation of the bookmark that ends the initial events of a streaming list. */
const initialEndAnnotation = 'k8s.io/initial-events-end';

/** Parses JSON; anything else is `Garbled`. `what` names the call. */
export function parseJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw garbled(what, 'not JSON', cause);
  }
}

/** Parses one object. T is the caller's claim about the kind. */
export function parseObject<T extends KubeObject>(what: string, text: string): T {
  const value = parseJson(what, text);
  if (!isKubeObject(value)) throw garbled(what, 'not an object with a name');
  return value as T; // The claim; see the head of this file.
}

/** Parses one page of a LIST; `next` is the continue token, absent on the last page. */
export function parsePage<T extends KubeObject>(
  what: string,
  text: string,
): { page: ListPage<T>; next: string | undefined } {
  const value = parseJson(what, text);
  const metadata = isFields(value) ? value.metadata : undefined;
  // Go writes an empty list as null in some kinds.
  const items = isFields(value) ? (value.items ?? []) : undefined;
  if (!isFields(metadata) || !Array.isArray(items) || !items.every(isKubeObject)) throw garbled(what, 'not a list');
  const { resourceVersion, continue: next } = metadata;
  if (typeof resourceVersion !== 'string') throw garbled(what, 'a list without a version');
  return {
    page: { items: items as T[], resourceVersion }, // The claim; see the head of this file.
    next: typeof next === 'string' && next !== '' ? next : undefined,
  };
}

/** Parses one line of a watch. */
export function parseEvent<T extends KubeObject>(what: string, line: string): WatchEvent<T> {
  const event = parseJson(what, line);
  if (!isFields(event)) throw garbled(what, 'not a watch event');
  const { type, object } = event;
  if (type === 'ERROR') return { type, error: eventError(what, object) };
  if (type === 'BOOKMARK') return parseBookmark(what, object);
  if ((type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') && isKubeObject(object)) {
    return { type, object: object as T }; // The claim; see the head of this file.
  }
  throw garbled(what, 'not a watch event');
}

/** A bookmark is an object of the kind with nothing but a version and perhaps an annotation. */
function parseBookmark<T>(what: string, object: unknown): WatchEvent<T> {
  const metadata = isFields(object) ? object.metadata : undefined;
  const resourceVersion = isFields(metadata) ? metadata.resourceVersion : undefined;
  if (!isFields(metadata) || typeof resourceVersion !== 'string') throw garbled(what, 'a bookmark without a version');
  const annotations = metadata.annotations;
  const isInitialEnd = isFields(annotations) && annotations[initialEndAnnotation] === 'true';
  return { type: 'BOOKMARK', resourceVersion, isInitialEnd };
}

function isFields(value: unknown): value is AnswerFields {
  return typeof value === 'object' && value !== null;
}

function isKubeObject(value: unknown): value is KubeObject {
  if (!isFields(value)) return false;
  const { metadata } = value;
  return isFields(metadata) && typeof metadata.name === 'string';
}

function garbled(what: string, problem: string, cause?: unknown): ApiError {
  return ApiError.transport('Garbled', `${what}: the answer is ${problem}`, cause);
}
