/** From a rule set to all that Envoy is told, by name; pure. */
import type { RuleSet } from '../../core/proxy/served.ts';
import { clusterOf } from './clusters.ts';
import { type ListenerPlaces, listenersOf } from './listeners.ts';
import { type EnvoyMessage, typed } from './message.ts';
import { routesOf } from './routes.ts';

/** Everything of a rule set. */
export interface EnvoyResources {
  /** Rule id -> cluster. */
  readonly clusters: ReadonlyMap<string, EnvoyMessage>;
  /** Listener name -> listener; that of a TCP rule is its id. */
  readonly listeners: ReadonlyMap<string, EnvoyMessage>;
  readonly routes: EnvoyMessage;
}

/** Renders a rule set. The same rules give the same text. */
export const render = (rules: RuleSet, places: ListenerPlaces): EnvoyResources => ({
  clusters: new Map(rules.rules.map((rule) => [rule.id, clusterOf(rule)])),
  listeners: listenersOf(rules, places),
  routes: { ...typed('envoy.config.route.v3.RouteConfiguration'), ...routesOf(rules) },
});
