/** The frame of an object as an informer hands it over: metadata is the API server's, spec and status are anybody's. */
import { faultsOf } from '../../api/sentence.ts';
import { lower } from '../../api/structural.ts';
import { type Finding, finding } from '../cluster/finding.ts';

/** An object of one of our kinds. Nothing is assumed about `spec` and `status`. */
export interface ApiObject {
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** The metadata that the projections read. */
export interface Metadata {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** When the object was made. A manifest that was never applied counts as younger than everything that was. */
export const createdAtMsOf = ({ creationTimestamp }: Metadata): number => {
  const createdAtMs = Date.parse(creationTimestamp ?? '');
  return Number.isNaN(createdAtMs) ? Number.MAX_SAFE_INTEGER : createdAtMs;
};

/** A zod schema of src/api, and the type of what it gives. */
export type Schema = Parameters<typeof lower>[0];
export type Output<S extends Schema> = S['_zod']['output'];

/** A spec as far as it can be read. */
export interface ReadSpec<T> {
  /** Undefined when the spec does not even have the shape that the API server asks for. */
  readonly value: T | undefined;
  /** What is wrong, with the path of the field. */
  readonly faults: readonly SpecFault[];
}

/** Something that is wrong with a spec. */
export interface SpecFault {
  readonly path: readonly PropertyKey[];
  readonly finding: Finding;
}

/**
 * Reads the spec with its schema. A spec that only breaks rules (a default EIP outside the pool, say) is read all the
 * same: such an object may have been stored before the rule was, and refusing all of it would cut off what works.
 */
export const readSpec = <S extends Schema>(schema: S, { spec }: ApiObject, who: string): ReadSpec<Output<S>> => {
  const parsed = schema.safeParse(spec);
  if (parsed.success) return { value: parsed.data, faults: [] };
  const faults = faultsOf(parsed.error, lower(schema, who), spec).map(({ path, sentence }) => ({
    path,
    finding: finding('SpecInvalid', `${who}: ${sentence}.`),
  }));
  const breaksRulesOnly = parsed.error.issues.every(({ code }) => code === 'custom');
  return { value: breaksRulesOnly ? valueDespiteRules(schema, spec) : undefined, faults };
};

// safeParse gives no value once a rule has spoken; the interface that zod has for libraries does.
const valueDespiteRules = <S extends Schema>(schema: S, spec: unknown): Output<S> | undefined => {
  const result = schema._zod.run({ value: spec, issues: [] }, { async: false });
  return result instanceof Promise ? undefined : result.value;
};

/** True when something is wrong inside a field; a selector in it may then mean more than its author wanted. */
export const isBroken = (faults: readonly SpecFault[], ...field: readonly string[]): boolean =>
  faults.some(({ path }) => field.every((key, index) => path[index] === key));

/** Reads the status with its schema. What somebody has written by hand and cannot be read counts as not written. */
export const readStatus = <S extends Schema>(schema: S, { status }: ApiObject): Output<S> | undefined => {
  const parsed = schema.safeParse(status);
  return parsed.success ? parsed.data : undefined;
};
