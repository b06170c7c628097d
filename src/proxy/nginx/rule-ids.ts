/**
 * RuleIds has the ids of rules by their identifiers in the configuration, which the log tells. A rule that is gone is known for as
 * long as one of its connections may go on, and then forgotten: rules come and go for as long as the process runs.
 */
import type { ServedRule } from '../../core/proxy/served.ts';
import { keyOf } from '../engine/rule-key.ts';

export class RuleIds {
  readonly #keptMs: number;
  readonly #idByKey = new Map<string, string>();
  /** Id of a rule that is gone -> when it was first seen to be. */
  readonly #goneSince = new Map<string, number>();

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** The rule of an identifier. */
  idOf(key: string): string | undefined {
    return this.#idByKey.get(key);
  }

  /** Takes the rules that are wanted from now on, and tells the ids of those that are forgotten. */
  want(rules: readonly ServedRule[], nowMs: number): string[] {
    const wanted = new Set(rules.map(({ id }) => id));
    for (const id of this.#idByKey.values()) {
      if (!wanted.has(id) && !this.#goneSince.has(id)) this.#goneSince.set(id, nowMs);
    }
    for (const id of wanted) {
      this.#goneSince.delete(id);
      this.#idByKey.set(keyOf(id), id);
    }
    const forgotten = [...this.#goneSince].filter(([, since]) => nowMs - since > this.#keptMs).map(([id]) => id);
    for (const id of forgotten) {
      this.#goneSince.delete(id);
      this.#idByKey.delete(keyOf(id));
    }
    return forgotten;
  }
}
