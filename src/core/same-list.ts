/**
 * Whether two lists hold the very same values in the same order. Views are values that are never changed, and a view of
 * an object that did not change stays the same value: so this tells without reading them that there is nothing new.
 */
export const isSameList = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a === b || (a.length === b.length && a.every((item, index) => item === b[index]));
