/**
 * Turns what the API server says about a failure (meta/v1 Status, in an answer or in a watch's ERROR event)
 * into an ApiError.
 */
import { z } from 'zod';
import { ApiError } from './api-error.ts';

/** Every part is optional: proxies in front of a server answer with bodies of their own. */
const statusSchema = z.object({
  code: z.number().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  details: z
    .object({
      retryAfterSeconds: z.number().nonnegative().optional(),
      causes: z
        .array(
          z.object({ field: z.string().optional(), reason: z.string().optional(), message: z.string().optional() }),
        )
        .optional(),
    })
    .optional(),
});

type ApiStatus = z.infer<typeof statusSchema>;

/** Reasons for answers that do not name one, by HTTP status. */
const reasonByStatus: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** Makes the error for an answer with a failing status. `what` says what was attempted. */
export function answerError(what: string, status: number, body: string, retryAfter: string | undefined): ApiError {
  const parsed = parseStatus(body);
  const seconds = parsed?.details?.retryAfterSeconds ?? secondsIn(retryAfter);
  const said = parsed?.message ?? (body.trim().slice(0, 200) || 'no explanation');
  return makeError(what, status, parsed, said, seconds);
}

/** Makes the error for the object of a watch's ERROR event. */
export function eventError(what: string, object: unknown): ApiError {
  const parsed = statusSchema.safeParse(object).data;
  const said = parsed?.message ?? 'no explanation';
  return makeError(what, parsed?.code ?? 500, parsed, said, parsed?.details?.retryAfterSeconds);
}

function makeError(
  what: string,
  status: number,
  parsed: ApiStatus | undefined,
  said: string,
  seconds?: number,
): ApiError {
  const reason = parsed?.reason || reasonByStatus[status] || 'Unknown';
  const causes = (parsed?.details?.causes ?? []).map(({ field, reason: why, message }) => ({
    ...(field === undefined ? {} : { field }),
    ...(why === undefined ? {} : { reason: why }),
    ...(message === undefined ? {} : { message }),
  }));
  return new ApiError({
    status,
    reason,
    message: `${what}: ${said} (${status} ${reason})`,
    causes,
    // A Retry-After of 0 is no request for a pause.
    retryAfterMs: seconds === undefined || seconds === 0 ? undefined : seconds * 1_000,
  });
}

function parseStatus(body: string): ApiStatus | undefined {
  try {
    return statusSchema.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

/** Kubernetes always sends whole seconds; the date form of the header is not used. */
function secondsIn(retryAfter: string | undefined): number | undefined {
  return retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
}
