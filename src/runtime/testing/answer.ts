/** Answer is what the in-memory API server says before it is sent. */

/** A body that is a string is JSON text already. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Returns a failing answer of the API server (meta/v1 Status). */
export function failure(status: number, reason: string, message: string, retryAfterSeconds?: number): Answer {
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  return {
    status,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code: status, ...details },
  };
}

/** What the real server says when a version or a continue token is too old, as an answer or in an ERROR event. */
export const gone = failure(410, 'Expired', 'too old resource version');
