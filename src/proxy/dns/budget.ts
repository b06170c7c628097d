/**
 * Budget shares the questions under way among rules and namespaces. Names that never answer keep a question for seconds, and
 * whoever has many of them, such as a wildcard under which clients invent names, must not take the turns of others.
 */

/** Whose rule a name is of. */
export interface RuleOwner {
  /** `namespace/egress/rule`. */
  readonly rule: string;
  readonly namespace: string;
}

/** Questions under way at a time. A namespace with few is never refused, whatever the others do. */
export const most = { all: 1000, namespace: 256, rule: 64, always: 16 } as const;

export class Budget {
  /** Rule or namespace -> its questions under way. The id of a rule has slashes, so no two are the same. */
  readonly #running = new Map<string, number>();
  #all = 0;

  /** True when one more question of the owner may be asked. */
  allows({ rule, namespace }: RuleOwner): boolean {
    const ofNamespace = this.#running.get(namespace) ?? 0;
    if (ofNamespace < most.always) return true;
    const ofRule = this.#running.get(rule) ?? 0;
    return this.#all < most.all && ofNamespace < most.namespace && ofRule < most.rule;
  }

  /** Counts a question; the function that is returned says that it has ended. */
  begin({ rule, namespace }: RuleOwner): () => void {
    const change = (by: 1 | -1): void => {
      this.#all += by;
      for (const key of [rule, namespace]) {
        const count = (this.#running.get(key) ?? 0) + by;
        if (count === 0) this.#running.delete(key);
        else this.#running.set(key, count);
      }
    };
    change(1);
    return () => change(-1);
  }
}
