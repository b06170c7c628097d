/** Whether two collections hold the same, so that whoever depends on one has no work. */

/**
 * True for lists of the very same values in the same order. Views are values that are never changed, and a view of an object
 * that did not change stays the same value: so this tells without reading them that there is nothing new.
 */
export const isSameList = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a === b || (a.length === b.length && a.every((item, index) => item === b[index]));

/** True for sets of the same values. */
export const isSameSet = (a: ReadonlySet<unknown>, b: ReadonlySet<unknown>): boolean =>
  a === b || (a.size === b.size && a.isSubsetOf(b));

/** True for maps with the same keys and the same values. */
export const isSameMap =
  <V>(isSame: (a: V, b: V) => boolean) =>
  <K>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>): boolean => {
    if (a.size !== b.size) return false;
    for (const [key, value] of a) {
      const other = b.get(key);
      if (other === undefined || !isSame(value, other)) return false;
    }
    return true;
  };
