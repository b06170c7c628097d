/** Whether two collections say the same, so that whoever depends on one has no work. */

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

/** True for sets of the same values. */
export const isSameSet = (a: ReadonlySet<unknown>, b: ReadonlySet<unknown>): boolean =>
  a.size === b.size && a.isSubsetOf(b);
