/**
 * PolicyViews are the policies as a decision sees them: what the caches hold, with the bindings that were decided last where
 * the caches do not show them yet. Of thousands of policies only those are read that changed.
 */

import type { Eip, PolicyView, RecordedBinding } from '../../core/cluster/view.ts';
import { eipKey } from '../../core/ownership/node-group.ts';
import type { PolicyPlan } from '../../core/plan/policy-plan.ts';
import type { PolicyChange } from '../../core/plan/policy-plans.ts';
import type { CachedPolicy, ControllerCache } from '../loop/caches.ts';

/** The policies of one cache, and the views that were made of them; both in the order of the cache. */
interface Looked {
  readonly kept: (CachedPolicy | undefined)[];
  readonly views: PolicyView[];
}

/** Beyond this many changes it costs less to look at all anew. */
const few = 64;

/** The views of one Decider. */
export class PolicyViews {
  readonly #caches: readonly Pick<ControllerCache<CachedPolicy>, 'store'>[];
  #looked: readonly Looked[] = [];
  /** view in the cache -> the view with the binding that was decided, while the cache does not show it */
  readonly #copies = new WeakMap<PolicyView, PolicyView>();
  /** uid of a policy -> its binding as last decided */
  readonly #bindingByUid = new Map<string, RecordedBinding>();

  constructor(caches: readonly Pick<ControllerCache<CachedPolicy>, 'store'>[]) {
    this.#caches = caches;
  }

  /** The views of now; that of a policy about which there is nothing new is the same value as last time. */
  look(): readonly PolicyView[] {
    this.#looked = this.#caches.map(({ store }, index) => this.#lookAt(store.values(), this.#looked[index]));
    const [first, second] = this.#looked.map(({ views }) => views);
    return second === undefined || second.length === 0 ? (first ?? []) : this.#looked.flatMap(({ views }) => views);
  }

  /** Takes what was decided about these views. */
  remember(changes: readonly PolicyChange[]): void {
    const stale = new Set<PolicyView>();
    for (const { policy, plan } of changes) {
      if (plan === undefined) {
        this.#bindingByUid.delete(policy.uid);
        continue;
      }
      const binding = bindingOf(plan, policy.recorded);
      this.#bindingByUid.set(policy.uid, binding);
      if (binding !== policy.recorded) stale.add(policy);
    }
    if (stale.size > few) this.#looked = [];
    for (const { kept, views } of this.#looked) {
      for (const policy of stale) {
        const place = views.indexOf(policy);
        if (place >= 0) kept[place] = undefined;
      }
    }
  }

  #lookAt(policies: Iterable<CachedPolicy>, last: Looked | undefined): Looked {
    const kept: CachedPolicy[] = [];
    const views: PolicyView[] = [];
    let place = 0;
    for (const policy of policies) {
      // A cache keeps the order of its policies, and new ones come last.
      if (last?.kept[place] !== policy && last?.kept[place + 1] === policy) place += 1;
      const known = last?.kept[place] === policy ? last.views[place] : undefined;
      place += 1;
      kept.push(policy);
      views.push(known ?? this.#viewOf(policy));
    }
    return { kept, views };
  }

  #viewOf({ view }: CachedPolicy): PolicyView {
    const recorded = this.#bindingByUid.get(view.uid);
    // Most caches have caught up: a view that says the same already needs no copy.
    if (recorded === undefined || isSameBinding(recorded, view.recorded)) return view;
    const known = this.#copies.get(view);
    if (known?.recorded === recorded) return known;
    const copy = { ...view, recorded };
    this.#copies.set(view, copy);
    return copy;
  }
}

const noEip: Eip = { ipv4: undefined, ipv6: undefined };

/** The binding as reading the written status would give it; the record at hand is kept when it says the same. */
const bindingOf = ({ binding, gateway: chosen }: PolicyPlan, recorded: RecordedBinding): RecordedBinding => {
  const { eip = noEip, node, slot, epoch = 0 } = binding ?? {};
  const gateway = binding === undefined || eipKey(eip) !== undefined ? undefined : chosen;
  if (isSameBinding({ eip, gateway, node, slot, epoch }, recorded)) return recorded;
  // The same value, so that its addresses are not read anew.
  return { eip: isSameEip(eip, recorded.eip) ? recorded.eip : eip, gateway, node, slot, epoch };
};

const isSameBinding = (a: RecordedBinding, b: RecordedBinding): boolean =>
  a.gateway === b.gateway && a.node === b.node && a.slot === b.slot && a.epoch === b.epoch && isSameEip(a.eip, b.eip);

const isSameEip = (a: Eip, b: Eip): boolean => a.ipv4 === b.ipv4 && a.ipv6 === b.ipv6;
