/**
 * The wire format of admission.k8s.io/v1: from the body of a request to AdmissionRequest, and from a verdict back.
 * Objects stay `unknown`: the handler that knows the kind parses them.
 */
import { z } from 'zod';
import type { JsonPatchOperation } from '../kube/client.ts';
import { assertNever } from '../process/bug.ts';

const groupVersionKind = z.object({ group: z.string(), version: z.string(), kind: z.string() });

/** Go writes null where there is no object. */
const absentIfNull = z.unknown().transform((value) => value ?? undefined);

const admissionRequest = z.object({
  uid: z.string().min(1),
  kind: groupVersionKind,
  resource: z.object({ group: z.string(), version: z.string(), resource: z.string() }),
  subResource: z.string().optional(),
  name: z.string().optional(),
  namespace: z.string().optional(),
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  userInfo: z.object({ username: z.string().default(''), groups: z.array(z.string()).default([]) }),
  object: absentIfNull,
  oldObject: absentIfNull,
  dryRun: z.boolean().default(false),
});

const admissionReview = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: admissionRequest,
});

/** What the API server asks. `object` is absent for DELETE, `oldObject` for CREATE. */
export type AdmissionRequest = Readonly<z.infer<typeof admissionRequest>>;

/** What a handler decides. Warnings are shown to the user by kubectl. */
export type AdmissionVerdict =
  | { readonly kind: 'allow'; readonly warnings?: readonly string[] }
  | {
      readonly kind: 'patch';
      readonly operations: readonly JsonPatchOperation[];
      readonly warnings?: readonly string[];
    }
  | {
      readonly kind: 'deny';
      /** A typed reason; it reaches the client as `status.reason`. */
      readonly reason: string;
      /** The HTTP code the client sees; 403 when absent. 503 says: nothing is wrong with the object, try again. */
      readonly code?: number;
      /** One sentence with the field, the value and what is allowed. */
      readonly message: string;
      readonly warnings?: readonly string[];
    };

/** Returns the request of a body, or one sentence that says what is wrong with it. */
export function parseReview(
  body: string,
): { readonly ok: true; readonly request: AdmissionRequest } | { readonly ok: false; readonly message: string } {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { ok: false, message: 'the body is not JSON' };
  }
  const parsed = admissionReview.safeParse(json);
  if (parsed.success) return { ok: true, request: parsed.data.request };
  const [issue] = parsed.error.issues;
  const path = issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.join('.');
  return {
    ok: false,
    message: `the body is not an AdmissionReview of admission.k8s.io/v1: ${path}: ${issue?.message}`,
  };
}

/** Returns the body of the answer. The same verdict gives the same text. */
export function renderReview(uid: string, verdict: AdmissionVerdict): string {
  const warnings = verdict.warnings !== undefined && verdict.warnings.length > 0 ? { warnings: verdict.warnings } : {};
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, ...outcome(verdict), ...warnings },
  });
}

function outcome(verdict: AdmissionVerdict): object {
  switch (verdict.kind) {
    case 'allow':
      return { allowed: true };
    case 'patch': {
      const patch = Buffer.from(JSON.stringify(verdict.operations)).toString('base64');
      return verdict.operations.length === 0 ? { allowed: true } : { allowed: true, patchType: 'JSONPatch', patch };
    }
    case 'deny':
      return {
        allowed: false,
        status: { code: verdict.code ?? 403, reason: verdict.reason, message: verdict.message },
      };
    default:
      return assertNever(verdict);
  }
}
