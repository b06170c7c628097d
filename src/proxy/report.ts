/** From what is in force, what the engine counts and where names lead to the report of a replica. Pure. */
import type { ProxyReport, RuleReport } from '../api/proxy-report.ts';
import type { ServedRule } from '../core/proxy/served.ts';
import type { EngineReading, ProxyEngine, RuleProblem } from './engine.ts';
import { type NameFinding, nameOf } from './names.ts';
import type { Wanted } from './wanted.ts';

/** Rules as the engine has them. */
export interface InForce {
  readonly wanted: Wanted;
  /** Why a rule is not live, by id. */
  readonly problems: ReadonlyMap<string, RuleProblem>;
}

/** What a report is made from. */
export interface ReportInput {
  readonly engine: ProxyEngine['name'];
  readonly inForce: InForce;
  readonly reading: EngineReading;
  /** What users should know of a live rule; undefined when there is nothing. */
  readonly noteOf?: (rule: ServedRule) => string | undefined;
  /** Undefined for a name that was not looked up yet. */
  readonly nameFinding: (name: string) => NameFinding | undefined;
  /** Names that were not let through by the guard, by a short word for why. */
  readonly guarded: ReadonlyMap<string, number>;
}

/** The report. A rule whose name leads nowhere is in error, though the engine has it. */
export const reportOf = ({ engine, inForce, reading, noteOf, nameFinding, guarded }: ReportInput): ProxyReport => ({
  engine,
  revision: inForce.wanted.rules.revision,
  egresses: Object.fromEntries(inForce.wanted.egresses),
  rules: inForce.wanted.rules.rules.map((rule): RuleReport => {
    const name = nameOf(rule);
    const found = name === undefined ? undefined : nameFinding(name);
    const problem = inForce.problems.get(rule.id) ?? found?.problem;
    const { actives = 0, connections = 0, bytesSent = 0, bytesReceived = 0 } = reading.rules.get(rule.id) ?? {};
    return {
      id: rule.id,
      ...(problem === undefined ? live(noteOf?.(rule)) : { state: 'error', ...problem }),
      actives,
      connections,
      bytesSent,
      bytesReceived,
      addresses: found?.addresses ?? addressesOf(rule),
    };
  }),
  refused: sums([...reading.refused, ...guarded]),
});

const live = (sentence: string | undefined): Pick<RuleReport, 'state' | 'sentence'> =>
  sentence === undefined ? { state: 'live' } : { state: 'live', sentence };

const addressesOf = (rule: ServedRule): readonly string[] => {
  if (rule.kind === 'tcp') return rule.to.kind === 'addresses' ? rule.to.ips : [];
  return rule.host.kind === 'address' ? [rule.host.ip] : [];
};

const sums = (counts: readonly (readonly [string, number])[]): Record<string, number> => {
  const total: Record<string, number> = {};
  for (const [word, count] of counts) total[word] = (total[word] ?? 0) + count;
  return total;
};
