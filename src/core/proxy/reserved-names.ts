/**
 * Names that no rule may take. A name that is published answers for every pod of the cluster, so a rule for
 * `kubernetes.default.svc.cluster.local` would let its author answer for the API server.
 */
import { destinationsOf, isBelowAny } from './tenants.ts';
import type { HttpRuleView, TcpRuleView } from './view.ts';

/** Reserved in every cluster: these names and all names below them. `svc` is what clients with few `ndots` ask for. */
const always: readonly string[] = ['localhost', 'svc', 'in-addr.arpa', 'ip6.arpa'];

/** The domain of most clusters. */
export const defaultClusterDomain = 'cluster.local';

/** The reserved name that a rule is about; undefined when there is none. `reserved` are the cluster's own, beside `always`. */
export const reservedName = (rule: TcpRuleView | HttpRuleView, reserved: readonly string[]): string | undefined =>
  destinationsOf(rule).names.find((name) => isBelowAny(name, always) || isBelowAny(name, reserved));
