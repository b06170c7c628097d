/**
 * What differs between an object as it should be and as it is. Only fields that we decide count: the API server fills in
 * others, and other people may own some.
 */
import { isDeepStrictEqual } from 'node:util';

/** `actual` with only the fields that `wanted` has, at every depth. Lists of another length are kept whole: they differ. */
export const alike = (actual: unknown, wanted: unknown): unknown => {
  if (Array.isArray(wanted)) {
    // Go writes an empty list as null, or not at all.
    if (wanted.length === 0 && (actual === null || actual === undefined)) return [];
    if (!Array.isArray(actual) || actual.length !== wanted.length) return actual;
    return wanted.map((part, index) => alike(actual[index], part));
  }
  if (!isFields(wanted) || !isFields(actual)) return actual;
  return Object.fromEntries(Object.keys(wanted).map((key) => [key, alike(actual[key], wanted[key])]));
};

/** True when `actual` shows all that is wanted. */
export const isMet = (actual: unknown, wanted: unknown): boolean => isDeepStrictEqual(alike(actual, wanted), wanted);

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
