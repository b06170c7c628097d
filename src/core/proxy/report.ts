/** Replicas of a proxy as decisions see them: the pods that Kubernetes calls ready, and what each of them told last. */
import type { ProxyReport, RuleReport } from '../../api/proxy-report.ts';

/** A ready pod of a proxy. */
export interface Replica {
  readonly pod: string;
  /** True when it has not answered for so long that nobody knows what it does. */
  readonly isSilent: boolean;
  /** What it told last; undefined when it never did. */
  readonly report: ProxyReport | undefined;
}

/** What a replica says about one rule of an object. */
export type ReplicaRuleState =
  | { readonly kind: 'live'; readonly rule: RuleReport }
  | { readonly kind: 'error'; readonly rule: RuleReport }
  /** It does not serve this generation of the object, or not this rule of it. */
  | { readonly kind: 'behind' }
  | { readonly kind: 'silent' };

/** Looks a rule up in the report of a replica; `servedBy` is the id under which it is served. */
export const ruleStateIn = (
  { isSilent, report }: Replica,
  egress: { readonly key: string; readonly generation: number },
  servedBy: string,
): ReplicaRuleState => {
  if (isSilent) return { kind: 'silent' };
  if (report?.egresses[egress.key] !== egress.generation) return { kind: 'behind' };
  const rule = rulesOf(report).get(servedBy);
  return rule === undefined ? { kind: 'behind' } : { kind: rule.state, rule };
};

// A report is asked for each of its rules, and there may be a thousand.
const rulesByReport = new WeakMap<ProxyReport, ReadonlyMap<string, RuleReport>>();
const rulesOf = (report: ProxyReport): ReadonlyMap<string, RuleReport> => {
  const known = rulesByReport.get(report) ?? new Map(report.rules.map((rule) => [rule.id, rule]));
  rulesByReport.set(report, known);
  return known;
};

/** True when no replica that is heard of serves anything of the object. A silent one counts as gone: it cannot be asked. */
export const isGoneFrom = (replicas: readonly Replica[], egressKey: string): boolean =>
  replicas.every(
    ({ isSilent, report }) => isSilent || report === undefined || !Object.hasOwn(report.egresses, egressKey),
  );
