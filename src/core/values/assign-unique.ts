/**
 * Giving out values of which no two may be equal: marks, slots, tunnel addresses, MAC addresses. What is recorded is
 * kept. A new value is looked for from a place that a hash decides: the same claimant comes out at the same value when
 * it is made anew, and a value that has just become free is not the next to be given out.
 */

/** Somebody who needs a value. */
export interface ValueClaim<T> {
  readonly name: string;
  /** The value on record, if it is a legal one. */
  readonly recorded: T | undefined;
  /** Where the search for a new value starts; asked only when one is needed. */
  readonly hash: () => number;
}

/** The values that can be given out. */
export interface Space<T> {
  readonly size: number;
  /** The value at a place from 0 to size - 1; undefined for one that may not be used. */
  readonly at: (place: number) => T | undefined;
}

/**
 * A value for every claim, by name; a claim for which none is left is missing. Claims come in the order of their right:
 * of two with the same record the first keeps it. `reserved` values are not given to anybody new.
 */
export const assignUnique = <T>(
  claims: readonly ValueClaim<T>[],
  space: Space<T>,
  reserved: Iterable<T> = [],
): Map<string, T> => {
  const given = new Map<string, T>();
  const taken = new Set<T>();
  for (const { name, recorded } of claims) {
    if (recorded === undefined || taken.has(recorded)) continue;
    taken.add(recorded);
    given.set(name, recorded);
  }
  // Mostly nobody needs a new one.
  if (given.size === claims.length) return given;
  for (const value of reserved) taken.add(value);
  for (const { name, hash } of claims) {
    if (given.has(name)) continue;
    const value = firstFree(space, hash(), taken);
    if (value === undefined) break;
    taken.add(value);
    given.set(name, value);
  }
  return given;
};

/** The first value from the place of the hash on that is not taken; undefined when all are. */
export const firstFree = <T>(space: Space<T>, hash: number, taken: Pick<ReadonlySet<T>, 'has'>): T | undefined => {
  for (let step = 0; step < space.size; step += 1) {
    const value = space.at((hash + step) % space.size);
    if (value !== undefined && !taken.has(value)) return value;
  }
  return undefined;
};
