/**
 * PolicyRegister answers the questions of PolicyLookup in a time that does not grow with the number of policies. It is
 * kept in step change by change: to index 5,000 policies anew for every request would cost more than to judge it.
 */

import { ANY } from '../../core/cluster/labels.ts';
import type { PolicyKey, PolicySpecView, PolicyView } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import { SUBNET_TOKEN } from '../../core/policies/policy-index.ts';
import { comparePrecedence } from '../../core/policies/precedence.ts';
import { addressesOf, type PolicyLookup } from './view.ts';

/** How many policies that come first are compared with a new one; the condition Shadowed has no such limit. */
const RIVALS_PER_TOKEN = 16;

/** entry -> key -> policy */
type PoliciesByEntry = Map<string, Map<PolicyKey, PolicyView>>;

/** The register. `put` and `remove` follow the caches; readers use it as a PolicyLookup. */
export class PolicyRegister implements PolicyLookup {
  readonly #byKey = new Map<PolicyKey, PolicyView>();
  readonly #byGateway: PoliciesByEntry = new Map();
  readonly #byAddress: PoliciesByEntry = new Map();
  /** By namespace and one label that the pods must have, as in core/policy-index.ts. */
  readonly #byToken: PoliciesByEntry = new Map();

  /** Takes a policy in, in place of what was known of it. */
  put(policy: PolicyView): void {
    this.remove(policy.key);
    this.#byKey.set(policy.key, policy);
    for (const [files, entry] of this.#entriesOf(policy)) {
      const filed = files.get(entry);
      if (filed === undefined) files.set(entry, new Map([[policy.key, policy]]));
      else filed.set(policy.key, policy);
    }
  }

  /** Forgets a policy; nothing happens when it is not known. */
  remove(key: PolicyKey): void {
    const policy = this.#byKey.get(key);
    if (policy === undefined) return;
    this.#byKey.delete(key);
    for (const [files, entry] of this.#entriesOf(policy)) {
      const filed = files.get(entry);
      filed?.delete(key);
      if (filed?.size === 0) files.delete(entry);
    }
  }

  readonly naming = (gateway: string): Iterable<PolicyView> => this.#byGateway.get(gateway)?.values() ?? [];

  readonly holding = (ip: Ip): Iterable<PolicyView> => this.#byAddress.get(ip)?.values() ?? [];

  readonly rivalsOf = (policy: PolicyView, spec: PolicySpecView): readonly PolicyView[] => {
    const tokens = spec.appliedTo.kind === 'subnet' ? [ANY, SUBNET_TOKEN] : spec.appliedTo.pods.tokens;
    const scopes = policy.namespace === undefined ? [undefined] : [policy.namespace, undefined];
    const rivals = scopes.flatMap((scope) =>
      tokens.flatMap((token) => {
        const filed = this.#byToken.get(fileName(scope, token))?.values() ?? [];
        return Iterator.from(filed)
          .filter((other) => other.key !== policy.key && comparePrecedence(other, policy) < 0)
          .take(RIVALS_PER_TOKEN)
          .toArray();
      }),
    );
    return [...new Set(rivals)];
  };

  *#entriesOf(policy: PolicyView): Generator<readonly [PoliciesByEntry, string]> {
    const { spec, namespace } = policy;
    for (const ip of addressesOf(policy)) yield [this.#byAddress, ip];
    if (spec === undefined) return;
    yield [this.#byGateway, spec.gatewayName];
    const tokens = spec.appliedTo.kind === 'subnet' ? [SUBNET_TOKEN] : spec.appliedTo.pods.anchors;
    for (const token of tokens) yield [this.#byToken, fileName(namespace, token)];
  }
}

// Neither a namespace nor a label holds a blank, so no two files share a name.
const fileName = (namespace: string | undefined, token: string): string => `${namespace ?? ''} ${token}`;
