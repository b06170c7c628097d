/**
 * Names looks up the names of rules again and again, so that a name that leads nowhere is told before a client finds out.
 * The look-ups go through the guarding resolver, which remembers answers for as long as they hold.
 */
import type { RuleSet, ServedRule } from '../core/proxy/served.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { RuleProblem } from './engine/engine.ts';

/** Where a name leads at the moment. */
export interface NameTarget {
  readonly addresses: readonly string[];
  /** Why it leads nowhere; absent when it does. */
  readonly problem?: RuleProblem;
}

/** What the look-ups need. */
export interface NamesDeps {
  readonly check: (name: string) => Promise<NameTarget>;
  readonly clock: Clock;
  /** Told when a name begins or ceases to lead somewhere, or why it does not. */
  readonly onChange: (name: string, problem: RuleProblem | undefined) => void;
}

/** Between two rounds. Answers hold for a second at least, and a round of names that are fresh costs nothing. */
const everyMs = 2_000;
/** So many are asked at once, so that a thousand names do not wait for one that nobody answers. */
const together = 64;

/** The names of the rules in force. `set` them whenever they change, `run` once. */
export class Names {
  readonly #deps: NamesDeps;
  readonly #findings = new Map<string, NameTarget>();
  #names: ReadonlySet<string> = new Set();
  #wake = new AbortController();

  constructor(deps: NamesDeps) {
    this.#deps = deps;
  }

  /** From now on the names of these rules are looked up, new ones at once. */
  set({ rules }: Pick<RuleSet, 'rules'>): void {
    this.#names = new Set(rules.map(nameOf).filter((name) => name !== undefined));
    for (const name of this.#findings.keys()) if (!this.#names.has(name)) this.#findings.delete(name);
    this.#wake.abort();
  }

  /** What was found last; undefined when the name was not looked up yet. */
  finding(name: string): NameTarget | undefined {
    return this.#findings.get(name);
  }

  /** Looks names up until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.#round(signal);
      await wait(this.#deps.clock, everyMs, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    // Names that nobody knows anything of come first.
    const waiting = [...this.#names].toSorted((a, b) => Number(this.#findings.has(a)) - Number(this.#findings.has(b)));
    const work = async (): Promise<void> => {
      for (let name = waiting.shift(); name !== undefined && !signal.aborted; name = waiting.shift()) {
        this.#take(name, await this.#deps.check(name));
      }
    };
    await Promise.all(Array.from({ length: together }, work));
  }

  #take(name: string, finding: NameTarget): void {
    // The rules may have changed while it was asked.
    if (!this.#names.has(name)) return;
    const before = this.#findings.get(name)?.problem;
    this.#findings.set(name, finding);
    if (before?.reason !== finding.problem?.reason) this.#deps.onChange(name, finding.problem);
  }
}

/** The name that a rule leads to; undefined for addresses and for patterns, which stand for many names. */
export const nameOf = (rule: ServedRule): string | undefined => {
  if (rule.kind === 'tcp') return rule.to.kind === 'domain' ? rule.to.name : undefined;
  return rule.host.kind === 'exact' ? rule.host.name : undefined;
};
