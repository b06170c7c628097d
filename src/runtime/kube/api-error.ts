/**
 * ApiError is every way in which a call to the API server can fail: an answer that says no (status >= 400)
 * or no usable answer at all (status 0). Callers ask the questions below; nobody matches on text.
 */

/** Why there was no usable answer. The server's own reasons (`Conflict`, `NotFound`, ...) are CamelCase too. */
export type TransportReason =
  | 'Unreachable' // no connection could be made: the server has not seen the call
  | 'Disconnected' // the connection broke: the server may or may not have acted
  | 'Timeout' // no answer in time: the server may or may not have acted
  | 'Garbled' // the answer is not what the protocol promises
  | 'NoCredentials'; // nothing was sent: a token, certificate or plugin failed us

/** One line of `status.details.causes`: which field, and what is wrong with it. */
export interface ApiErrorCause {
  readonly field?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** The values an ApiError is made of. */
export interface ApiErrorFields {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
  readonly causes?: readonly ApiErrorCause[];
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A failed call. `retryAfterMs` is set when the server asked for a pause. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status, or 0 when there was no usable answer. */
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly ApiErrorCause[];
  readonly retryAfterMs: number | undefined;

  constructor(fields: ApiErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.status = fields.status;
    this.reason = fields.reason;
    this.causes = fields.causes ?? [];
    this.retryAfterMs = fields.retryAfterMs;
  }

  /** Makes the error for a call that got no usable answer. */
  static transport(reason: TransportReason, message: string, cause?: unknown): ApiError {
    return new ApiError({ status: 0, reason, message, cause });
  }
}

/** True when a server answered; false when there was no usable answer, or no failure at all. */
export function isAnswer(error: ApiError | undefined): boolean {
  return error !== undefined && error.status !== 0;
}

/** True when the object, or the whole kind, does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** True when the object was changed by somebody else: read it again, then decide again. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason !== 'AlreadyExists';
}

/** True when a create found the name taken. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason === 'AlreadyExists';
}

/** True when the asked resourceVersion or continue token is too old: list again. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/** True when the server understood the object and refused it: the same object will be refused again. */
export function isInvalid(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422);
}

/** True when the credentials were not accepted (401). */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** True when the credentials are good but may not do this (403). */
export function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403;
}

/** True when the server did not act on the call, so that repeating it is safe whatever the call was. */
export function isNotDone(error: unknown): boolean {
  return error instanceof ApiError && (error.reason === 'Unreachable' || error.status === 429);
}

/** True when the same call may succeed later: no answer, overload, or a fault inside the server. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.reason === 'NoCredentials') return false;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}
