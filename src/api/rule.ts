/**
 * A rule is one sentence of the API that a type cannot say. It is written once and judged twice: by the API server
 * (`rule`, in CEL) and by zod (`holds`), for the CLI, the lab and the tests, which have no API server at hand.
 */
import type { z } from 'zod';

/** One rule about a value. */
export interface Rule<Value> {
  /** CEL over `self`. It must never fail with an error, whatever the value is; the cost limits are the API server's. */
  readonly rule: string;
  /** Names the field and says what is allowed. */
  readonly message: string;
  /** CEL that makes a better message from the value; `message` is used when it fails. */
  readonly messageExpression?: string;
  /** The child that is at fault, as a JSON path such as `.ipv4`. */
  readonly fieldPath?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired';
  /** The same check in TypeScript; 'server' when only the API server can judge, as with the old value of an update. */
  readonly holds: ((value: Value) => boolean) | 'server';
}

/** The part of a rule that goes into the CRD. */
export type ServerRule = Omit<Rule<unknown>, 'holds'>;

/** The key under which a structural schema carries rules. */
export const validationsKey = 'x-kubernetes-validations';

/** Returns the schema with the rules attached: zod judges them, the CRD carries them. */
export function withRules<Schema extends z.ZodType>(
  schema: Schema,
  ...rules: readonly Rule<z.output<Schema>>[]
): Schema {
  const judged = schema.superRefine((value, context) => {
    for (const { holds, message, fieldPath } of rules) {
      if (holds === 'server' || holds(value)) continue;
      context.addIssue({ code: 'custom', message, path: fieldPath?.split('.').slice(1) ?? [] });
    }
  });
  const serverRules: ServerRule[] = rules.map(({ holds: _, ...serverRule }) => serverRule);
  return judged.meta({ ...schema.meta(), [validationsKey]: serverRules });
}
