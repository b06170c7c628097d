/**
 * Isolation keeps one policy that the kernel refuses from stopping all others. A table is refused as a whole, so the
 * culprits are found by halving: the table is tried with ever smaller groups of the policies that changed. A culprit
 * stays in force as the kernel last took it; one that the kernel never took is cut off, because its pods must not leave
 * with another address.
 */
import { type Finding, finding } from '../../core/cluster/finding.ts';
import type { PolicyKey, PolicyView, RecordedBinding } from '../../core/cluster/view.ts';
import { emptySet } from '../../core/ip/index.ts';
import type { NodeProblem } from '../../core/node/desired.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** Tries a list of policies on the kernel; returns why it was refused, or undefined when it is in force now. */
export type Attempt = (policies: readonly PolicyView[]) => Promise<string | undefined>;

/** What isolation needs. */
export interface IsolationDeps {
  readonly clock: Clock;
  /** Called when it is time to try refused policies again. */
  readonly onChange: () => void;
}

/** Refused policies are tried again after this long: the kernel may have been short of memory. */
const againMs = 60_000;

/** A policy that the kernel refuses, what stands in its place, and why. */
interface RefusedPolicy {
  readonly policy: PolicyView;
  readonly substitute: PolicyView;
  readonly found: Finding;
}

/** The policies that the kernel refuses. */
export class Isolation {
  readonly #deps: IsolationDeps;
  /** The policies that the kernel took last, substitutes included. */
  #good: readonly PolicyView[] = [];
  #refusedByKey: ReadonlyMap<PolicyKey, RefusedPolicy> = new Map();
  #cancelRetry = (): void => {};
  #covered: { readonly from: readonly PolicyView[]; readonly to: readonly PolicyView[] } | undefined;

  constructor(deps: IsolationDeps) {
    this.#deps = deps;
  }

  /** The policies with substitutes for those that are refused; the list itself when none is. */
  cover(policies: readonly PolicyView[]): readonly PolicyView[] {
    if (this.#refusedByKey.size === 0) return policies;
    if (this.#covered?.from !== policies) {
      const to = policies.map((policy) => {
        const refused = this.#refusedByKey.get(policy.key);
        // A policy that somebody has changed since deserves a new try.
        return refused?.policy === policy ? refused.substitute : policy;
      });
      this.#covered = { from: policies, to };
    }
    return this.#covered.to;
  }

  /** What is refused, for the report. */
  problems(): NodeProblem[] {
    return [...this.#refusedByKey.values()].map(({ policy, found }) => ({ finding: found, policy: policy.key }));
  }

  /** Notes that the kernel has taken a list that `cover` returned. */
  taken(covered: readonly PolicyView[]): void {
    this.#good = covered;
  }

  /**
   * Finds the policies because of which the kernel refuses, and leaves all others in force. Returns false when it
   * refuses for another cause: then nothing has changed.
   */
  async isolate(policies: readonly PolicyView[], attempt: Attempt): Promise<boolean> {
    const goodByKey = new Map(this.#good.map((policy) => [policy.key, policy]));
    const suspects = policies.filter((policy) => goodByKey.get(policy.key) !== policy);
    const substituteOf = (policy: PolicyView): PolicyView => goodByKey.get(policy.key) ?? cutOff(policy);
    const substituting = (replaced: ReadonlySet<PolicyView>): readonly PolicyView[] =>
      policies.map((policy) => (replaced.has(policy) ? substituteOf(policy) : policy));
    if ((await attempt(substituting(new Set(suspects)))) !== undefined) return false;
    let replaced: ReadonlySet<PolicyView> = new Set(suspects);
    const refusals = new Map<PolicyView, string>();
    const admit = async (group: readonly PolicyView[]): Promise<void> => {
      const [first] = group;
      if (first === undefined) return;
      const fewer = replaced.difference(new Set(group));
      const refusal = await attempt(substituting(fewer));
      if (refusal === undefined) {
        replaced = fewer;
      } else if (group.length === 1) {
        refusals.set(first, refusal);
      } else {
        const middle = group.length >> 1;
        await admit(group.slice(0, middle));
        await admit(group.slice(middle));
      }
    };
    await admit(suspects);
    this.#set([...replaced].map((policy) => refusedOf(policy, substituteOf(policy), refusals.get(policy) ?? '')));
    this.#good = substituting(replaced);
    return true;
  }

  #set(refused: readonly RefusedPolicy[]): void {
    const { clock, onChange } = this.#deps;
    this.#refusedByKey = new Map(refused.map((one) => [one.policy.key, one]));
    this.#covered = undefined;
    this.#cancelRetry();
    if (refused.length === 0) return;
    this.#cancelRetry = clock.after(againMs, () => {
      this.#refusedByKey = new Map();
      onChange();
    });
  }

  /** Tries nothing again. */
  close(): void {
    this.#cancelRetry();
  }
}

const refusedOf = (policy: PolicyView, substitute: PolicyView, refusal: string): RefusedPolicy => ({
  policy,
  substitute,
  found: finding('NftRefused', `The kernel refused the rules of policy ${policy.key}: ${refusal}.`),
});

const noBinding: RecordedBinding = {
  eip: { ipv4: undefined, ipv6: undefined },
  gateway: undefined,
  node: undefined,
  slot: undefined,
  epoch: 0,
};

/** The policy as one whose pods reach nothing outside the cluster: the simplest rules that let nothing leak. */
const cutOff = (policy: PolicyView): PolicyView => ({
  ...policy,
  spec: policy.spec && { ...policy.spec, destinations: undefined, exceptions: emptySet, onUnavailable: 'Drop' },
  recorded: noBinding,
});
