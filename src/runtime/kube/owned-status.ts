/**
 * The part of a status that the plan decides. Others write into the same status (agents, the slices loop, people), so
 * comparing and clearing look at this part only.
 */
import type { Condition } from '../../api/condition.ts';
import type { ConditionType } from '../../api/reason.ts';

/** Any status of ours. */
export interface AnyStatus {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly Condition[] | undefined;
}

/** Which part of a status is ours. */
export interface StatusOwnership<Status extends AnyStatus> {
  /** Our fields besides `observedGeneration` and `conditions`. */
  readonly fieldsOf: (status: Status) => object;
  readonly conditionTypes: readonly ConditionType[];
}

/** True when the status shows all that is wanted, and nothing of ours besides. Empty texts and objects count as absent. */
export const shows = <Status extends AnyStatus>(
  status: Status | undefined,
  wanted: Status,
  { fieldsOf, conditionTypes }: StatusOwnership<Status>,
): boolean =>
  status !== undefined &&
  status.observedGeneration === wanted.observedGeneration &&
  conditionTypes.every((type) => isSameCondition(conditionOf(status, type), conditionOf(wanted, type))) &&
  isSame(fieldsOf(status), fieldsOf(wanted));

/**
 * A merge patch that takes away what is ours, not wanted, and still there after an apply: apply leaves a field alone
 * that somebody else owns as well. Undefined when there is nothing to take away.
 */
export const clearing = <Status extends AnyStatus>(
  status: Status,
  wanted: Status,
  { fieldsOf, conditionTypes }: StatusOwnership<Status>,
): object | undefined => {
  const fields = surplus(fieldsOf(status), fieldsOf(wanted));
  const surplusTypes: readonly string[] = conditionTypes.filter((type) => conditionOf(wanted, type) === undefined);
  const kept = (status.conditions ?? []).filter(({ type }) => !surplusTypes.includes(type));
  const hasSurplusConditions = kept.length < (status.conditions ?? []).length;
  if (fields === undefined && !hasSurplusConditions) return undefined;
  return { ...fields, ...(hasSurplusConditions ? { conditions: kept } : {}) };
};

const conditionOf = ({ conditions }: AnyStatus, type: ConditionType): Condition | undefined =>
  conditions?.find((condition) => condition.type === type);

/** Times do not count: they follow from the status before. */
const isSameCondition = (a: Condition | undefined, b: Condition | undefined): boolean =>
  a?.status === b?.status &&
  a?.reason === b?.reason &&
  a?.message === b?.message &&
  a?.observedGeneration === b?.observedGeneration;

/** True when two values of a status say the same; empty texts and objects count as absent. It makes no copies. */
export const isSame = (a: unknown, b: unknown): boolean => {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return isAbsent(a) && isAbsent(b);
  return (
    Object.keys(a).every((name) => isSame(a[name], b[name])) &&
    Object.keys(b).every((name) => name in a || isAbsent(b[name]))
  );
};

const isAbsent = (value: unknown): boolean =>
  value === undefined || value === '' || (isFields(value) && Object.values(value).every(isAbsent));

/** Null for every field of `actual` that `wanted` does not have; undefined when there is none. */
const surplus = (actual: unknown, wanted: unknown): object | undefined => {
  if (!isFields(actual)) return undefined;
  const entries = Object.entries(actual).flatMap(([name, part]): [string, unknown][] => {
    const wish = isFields(wanted) ? wanted[name] : undefined;
    if (isAbsent(part)) return [];
    if (isAbsent(wish)) return [[name, null]];
    const deeper = surplus(part, wish);
    return deeper === undefined ? [] : [[name, deeper]];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
