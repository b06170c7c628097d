/** Statuses of both kinds from the plan and from what replicas and DNS tell. Times come in; nothing is looked up. */
import type { BCSEgressStatus } from '../../api/bcs-egress.ts';
import { type Finding, finding, isGood, listed } from '../cluster/finding.ts';
import type { EgressPlan } from './plan.ts';
import { type ObservedProxy, type RuleState, ruleStateOf, type State } from './rule-state.ts';

/** Everything about the status of a BCSEgress but its conditions, which need the times of the old ones. */
export interface EgressStatusPlan {
  readonly state: State;
  readonly fields: Omit<BCSEgressStatus, 'conditions'>;
  readonly findings: {
    readonly Accepted: Finding;
    readonly Programmed: Finding;
    /** Absent when the object has no name or Service to publish. */
    readonly Published?: Finding;
    /** Absent when the engine offers everything. */
    readonly Limited?: Finding;
  };
}

/** A text for people stays one that can be read, whatever the number of rules. */
const reasonsShown = 3;
const order: readonly State[] = ['Error', 'Unknown', 'Pending', 'Synced'];

/** The status of an object. `before` is the one that it shows now. */
export const statusOf = (
  plan: EgressPlan,
  known: ObservedProxy,
  before: BCSEgressStatus | undefined,
  now: Date,
): EgressStatusPlan => {
  const { view, revision } = plan;
  const rules = plan.rules.map((rule) => ruleStateOf(plan, rule, known));
  const state = view.problem === undefined ? stateOf(rules) : 'Error';
  const hasChanged = state === 'Synced' && before?.syncedRevision !== revision;
  const reason = reasonOf(view.problem, state, rules);
  const syncedAt = hasChanged ? seedTime(now) : before?.syncedAt;
  const syncedRevision = hasChanged ? revision : before?.syncedRevision;
  return {
    state,
    fields: {
      state,
      ...(reason === undefined ? {} : { reason }),
      httpActives: activesOf(rules, 'http'),
      tcpActives: activesOf(rules, 'tcp'),
      ...(syncedAt === undefined ? {} : { syncedAt }),
      ...(syncedRevision === undefined ? {} : { syncedRevision }),
      rules: rules.map(({ name, state: own, why, actives, addresses }) => ({
        name,
        state: own,
        ...(why === undefined ? {} : { reason: `${why.reason}: ${why.sentence}` }),
        actives,
        ...(addresses.length === 0 ? {} : { addresses: [...addresses] }),
      })),
      observedGeneration: view.generation,
    },
    findings: findingsOf(plan, rules, known),
  };
};

/** The worst state of the rules; an object without rules has nothing that could be missing. */
const stateOf = (rules: readonly RuleState[]): State =>
  order.find((state) => rules.some((rule) => rule.state === state)) ?? 'Synced';

const reasonOf = (problem: Finding | undefined, state: State, rules: readonly RuleState[]): string | undefined => {
  if (problem !== undefined) return problem.sentence;
  if (state === 'Synced') return undefined;
  const sentences = [
    ...new Set(rules.filter((rule) => rule.state === state).map(({ why }) => why?.sentence ?? '')),
  ].filter((sentence) => sentence !== '');
  const rest = sentences.length - reasonsShown;
  return [...sentences.slice(0, reasonsShown), ...(rest > 0 ? [`And ${rest} more; see rules.`] : [])].join(' ');
};

const activesOf = (rules: readonly RuleState[], kind: RuleState['kind']): number =>
  rules.filter((rule) => rule.kind === kind).reduce((sum, { actives }) => sum + actives, 0);

const findingsOf = (
  { view, rules: plans, limits }: EgressPlan,
  rules: readonly RuleState[],
  { published }: ObservedProxy,
): EgressStatusPlan['findings'] => {
  const failing = (about: RuleState['about']): Finding | undefined =>
    order
      .slice(0, 3)
      .map((state) => rules.find((rule) => rule.about === about && rule.state === state)?.why)
      .find((why) => why !== undefined);
  const toPublish = plans.flatMap(({ id }) => published.get(id) ?? []);
  const accepted = rules.filter(({ about }) => about !== 'Accepted');
  const live = accepted.filter(({ state, about }) => state === 'Synced' || about === 'Published');
  return {
    Accepted: view.problem ?? failing('Accepted') ?? finding('Valid', `All ${rules.length} rules are accepted.`),
    Programmed:
      counted(
        failing('Programmed'),
        live.length,
        accepted.length,
        `are live on every ready replica of ${view.proxy}`,
      ) ?? finding('RulesLive', `${accepted.length} rules are live on every ready replica of ${view.proxy}.`),
    ...(toPublish.length > 0
      ? {
          Published:
            counted(failing('Published'), toPublish.filter(isGood).length, toPublish.length, 'are published') ??
            publishedFinding(plans.flatMap(({ publish }) => (publish === undefined ? [] : [publish]))),
        }
      : {}),
    ...(limits === undefined ? {} : { Limited: limits }),
  };
};

/** A finding about one of many rules says how many are done, so that people see whether it goes on. */
const counted = (why: Finding | undefined, done: number, all: number, what: string): Finding | undefined =>
  why === undefined || all < 2
    ? why
    : { reason: why.reason, sentence: `${done} of ${all} rules ${what}. ${why.sentence}` };

const publishedFinding = (names: readonly string[]): Finding =>
  finding(
    'NamesPublished',
    names.length === 0
      ? 'Every TCP rule has its Service.'
      : `Names that lead to the proxy: ${listed([...new Set(names)])}.`,
  );

/** `YYYY-MM-DD hh:mm:ss` in UTC: how the first version of the kind wrote times. */
const seedTime = (now: Date): string => now.toISOString().slice(0, 19).replace('T', ' ');
