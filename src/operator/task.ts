/** Tasks side by side, but only so many at once. */

/** One thing to do to one object. */
export interface Task {
  /** Of which object, for the log. */
  readonly name: string;
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Told when the API server refuses or cannot be reached. */
  readonly failed?: (error: Error) => void;
}

/** Does the work for every item, at most `limit` at once; answers are in the order of the items. Rejects with the first failure. */
export const atMost = async <Item, Answer>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Answer>,
): Promise<Answer[]> => {
  const answers: Answer[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const place = next;
      next += 1;
      // The place was checked above.
      answers[place] = await work(items[place] as Item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return answers;
};
