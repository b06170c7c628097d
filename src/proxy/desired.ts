/** DesiredRules is what a proxy is to serve, from what its caches hold: the operator's plan, as far as the operator has seen it. */
import { projectClusterInfo } from '../core/project/index.ts';
import { letThrough } from '../core/proxy/gate.ts';
import { planProxies } from '../core/proxy/plan.ts';
import type { RuleSet } from '../core/proxy/served.ts';
import type { EgressView } from '../core/proxy/view.ts';
import type { ProxyCaches } from './caches.ts';

export interface DesiredRules {
  readonly rules: RuleSet;
  /** `namespace/name` of a BCSEgress that names this proxy -> the generation that the rules are made from. */
  readonly egresses: ReadonlyMap<string, number>;
}

/** The name of the one EgressClusterInfo. */
const clusterInfo = 'default';

/** What a proxy that nobody refers to serves. */
export const noDesiredRules = (controller: string): DesiredRules => ({
  rules: { revision: 'none', name: controller, rules: [], forbidden: [] },
  egresses: new Map(),
});

/** Makes Wanted again and again; it remembers what was let through before. */
export class DesiredRulesReader {
  readonly #caches: ProxyCaches;
  readonly #controller: string;
  readonly #reservedNames: readonly string[];
  #before: readonly EgressView[] = [];

  /** `controller` is `namespace/name` of the BCSEgressController. */
  constructor(caches: ProxyCaches, controller: string, reservedNames: readonly string[]) {
    this.#caches = caches;
    this.#controller = controller;
    this.#reservedNames = reservedNames;
  }

  /** What is wanted now. Call it when all caches are filled. */
  gather(): DesiredRules {
    const { egresses, proxies, clusterInfos, namespaces } = this.#caches;
    this.#before = letThrough(this.#before, [...egresses.store.values()]);
    const plan = planProxies({
      egresses: this.#before,
      proxies: [...proxies.store.values()],
      namespaces: new Map([...namespaces.store.values()].map(({ name, labels }) => [name, labels])),
      ranges: clusterInfos.store.get(clusterInfo) ?? projectClusterInfo(undefined),
      reservedNames: this.#reservedNames,
    });
    const rules = plan.proxies.get(this.#controller)?.rules;
    if (rules === undefined) return noDesiredRules(this.#controller);
    const served = [...plan.egresses.values()].filter(({ view }) => view.proxy === this.#controller);
    return { rules, egresses: new Map(served.map(({ view }) => [view.key, view.generation])) };
  }
}
