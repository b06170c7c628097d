/** A guard over a table of names instead of a resolver outside: for tests of what stands around it. */
import type { RuleSet } from '../../core/proxy/served.ts';
import { noSources, type Sources } from '../engine/sources.ts';
import { type NameTarget, nameOf } from '../names.ts';
import type { GuardingResolver } from '../replica.ts';

export class FakeGuard implements GuardingResolver {
  /** Where names lead; one that is missing does not resolve. */
  readonly addresses = new Map<string, readonly string[]>();
  readonly refused = new Map<string, number>();
  sources: Sources = noSources;
  #allowed: ReadonlySet<string | undefined> = new Set();

  set({ rules }: RuleSet): void {
    this.#allowed = new Set(rules.map(nameOf));
  }

  admit(sources: Sources): void {
    this.sources = sources;
  }

  async check(name: string): Promise<NameTarget> {
    const addresses = this.#allowed.has(name) ? this.addresses.get(name) : undefined;
    if (addresses !== undefined) return { addresses };
    return { addresses: [], problem: { reason: 'NameNotResolved', sentence: `${name} has no address` } };
  }
}
