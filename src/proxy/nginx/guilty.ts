/** Finds the rules that nginx refuses, by asking it about parts of the list. */

/** A rule that was refused, and the words of the refusal. */
export interface Guilty<T> {
  readonly rule: T;
  readonly words: string;
}

/** Says why a list is refused; undefined when it is not. */
export type Test<T> = (rules: readonly T[]) => Promise<string | undefined>;

/**
 * Splits the rules into those that pass together and those that do not. The guilty one is the last of the shortest beginning
 * of the list that is refused, so of two that do not go together the later one is refused. About log2(n) tests for each.
 */
export async function findGuilty<T>(
  rules: readonly T[],
  test: Test<T>,
): Promise<{ readonly passing: readonly T[]; readonly guilty: readonly Guilty<T>[] }> {
  let passing = rules;
  const guilty: Guilty<T>[] = [];
  for (let words = await test(passing); words !== undefined; words = await test(passing)) {
    // passing.slice(0, low) passes, passing.slice(0, high) is refused.
    let low = 0;
    let high = passing.length;
    let reason = words;
    const empty = await test([]);
    // Not a rule's fault, so leaving rules out does not help.
    if (empty !== undefined) throw new Error(empty);
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      const refused = await test(passing.slice(0, middle));
      if (refused === undefined) low = middle;
      else {
        high = middle;
        reason = refused;
      }
    }
    const [rule] = passing.slice(low, high);
    if (rule === undefined) throw new Error(reason);
    guilty.push({ rule, words: reason });
    passing = passing.toSpliced(low, 1);
  }
  return { passing, guilty };
}
