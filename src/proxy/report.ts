/** From what is in force, what the engine counts and where names lead to the report of a replica. Pure. */
import type { ProxyReport, RuleReport } from '../api/proxy-report.ts';
import type { ServedRule } from '../core/proxy/served.ts';
import type { DesiredRules } from './desired.ts';
import type { EngineReading, ProxyEngine, RuleProblem } from './engine/engine.ts';
import { type NameTarget, nameOf } from './names.ts';

/** Rules as the engine has them. */
export interface RulesInEngine {
  readonly wanted: DesiredRules;
  /** Why a rule is not live, by id. */
  readonly problems: ReadonlyMap<string, RuleProblem>;
}

/** What a report is made from. */
export interface ReportInput {
  readonly engine: ProxyEngine['name'];
  readonly inForce: RulesInEngine;
  readonly reading: EngineReading;
  /** What users should know of a live rule; undefined when there is nothing. */
  readonly noteOf?: (rule: ServedRule) => string | undefined;
  /** Undefined for a name that was not looked up yet. */
  readonly nameFinding: (name: string) => NameTarget | undefined;
  /** Names that were not let through by the guard, by a short word for why. */
  readonly guarded: ReadonlyMap<string, number>;
}

/** True while the engine has a rule and its name leads somewhere, but the engine has no address yet: it would answer 503. */
const isWaiting = (rule: ServedRule, { inForce, reading, nameFinding }: ReportInput): boolean => {
  const name = nameOf(rule);
  if (name === undefined || reading.resolved === undefined || reading.resolved.has(rule.id)) return false;
  return !inForce.problems.has(rule.id) && nameFinding(name)?.problem === undefined;
};

/** Whether any rule waits for the engine to have its addresses. */
export const hasWaiting = (input: ReportInput): boolean =>
  input.inForce.wanted.rules.rules.some((rule) => isWaiting(rule, input));

/**
 * The report. A rule whose name leads nowhere is in error, though the engine has it; one whose addresses the engine does not
 * have yet is left out, as if the engine had not taken it yet.
 */
export const reportOf = (input: ReportInput): ProxyReport => {
  const { engine, inForce, reading, noteOf, nameFinding, guarded } = input;
  const { revision, rules } = inForce.wanted.rules;
  const reportRule = (rule: ServedRule): RuleReport => {
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
  };
  return {
    engine,
    revision,
    egresses: Object.fromEntries(inForce.wanted.egresses),
    rules: rules.filter((rule) => !isWaiting(rule, input)).map(reportRule),
    refused: sums([...reading.refused, ...guarded]),
  };
};

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
