/** The state of one rule: what was decided about it, what the replicas tell, and whether its name answers. */
import type { BCSEgressStatus } from '../../api/bcs-egress.ts';
import { type Finding, finding, isGood, listed } from '../cluster/finding.ts';
import { compareText } from '../values/hash.ts';
import type { EgressPlan, RulePlan } from './plan.ts';
import { type Replica, type ReplicaRuleState, ruleStateIn } from './report.ts';

export type State = NonNullable<BCSEgressStatus['state']>;

export interface RuleState {
  readonly name: string;
  readonly kind: 'tcp' | 'http';
  readonly state: State;
  /** Why it is not Synced; for a Synced rule what is good to know, or nothing. */
  readonly why: Finding | undefined;
  readonly actives: number;
  readonly addresses: readonly string[];
  /** Which condition the finding belongs to. */
  readonly about: 'Accepted' | 'Programmed' | 'Published';
}

/** What is known besides the plan. */
export interface ObservedProxy {
  /** The ready pods of the proxy of the object. */
  readonly replicas: readonly Replica[];
  /** False until a replica has been heard of since the proxy was made: then nothing is lost yet, it only takes its time. */
  readonly hadContact: boolean;
  /** What keeps pods of the proxy from being ready; undefined when nothing is known to. */
  readonly trouble: Finding | undefined;
  /** True while the proxy, which does not exist, is about to be made. */
  readonly isBeingMade: boolean;
  /** Whether the Service and the name of a rule are there, by its id; missing means that there is nothing to publish. */
  readonly published: ReadonlyMap<string, Finding>;
}

/** The state of a rule of an object. */
export const ruleStateOf = ({ view }: EgressPlan, rule: RulePlan, known: ObservedProxy): RuleState => {
  const { name, kind, verdict, id } = rule;
  const plain = { name, kind, actives: 0, addresses: [] };
  if (!verdict.ok) {
    const isPending = verdict.finding.reason === 'ProxyNotFound' && known.isBeingMade;
    return { ...plain, state: isPending ? 'Pending' : 'Error', why: verdict.finding, about: 'Accepted' };
  }
  const told = known.replicas.map((replica) => ({
    pod: replica.pod,
    told: ruleStateIn(replica, view, verdict.servedBy),
  }));
  const served = told.flatMap(({ told }) => (told.kind === 'live' || told.kind === 'error' ? [told.rule] : []));
  const figures = {
    // The rule that serves for another counts for itself.
    actives: verdict.servedBy === id ? served.reduce((sum, { actives }) => sum + actives, 0) : 0,
    addresses: [...new Set(served.flatMap(({ addresses }) => addresses))].toSorted(compareText),
  };
  const published = known.published.get(id);
  const isPublished = published === undefined || isGood(published);
  const live = liveness(view.proxy, name, told, known);
  if (live.state !== 'Synced' || isPublished) {
    return { ...plain, ...figures, state: live.state, why: live.why ?? rule.withheld, about: 'Programmed' };
  }
  const isLasting = published.reason !== 'NameNotAnswering';
  return { ...plain, ...figures, state: isLasting ? 'Error' : 'Pending', why: published, about: 'Published' };
};

interface PodRuleState {
  readonly pod: string;
  readonly told: ReplicaRuleState;
}

const liveness = (
  proxy: string,
  name: string,
  told: readonly PodRuleState[],
  { hadContact, trouble }: ObservedProxy,
): { readonly state: State; readonly why: Finding | undefined } => {
  const podsThat = (kind: ReplicaRuleState['kind']): string[] =>
    told.filter((one) => one.told.kind === kind).map(({ pod }) => pod);
  if (told.length === 0 && trouble !== undefined) return { state: hadContact ? 'Unknown' : 'Pending', why: trouble };
  if (told.length === 0) {
    return hadContact
      ? { state: 'Unknown', why: finding('ProxyOutOfContact', `The proxy ${proxy} has no ready pod.`) }
      : { state: 'Pending', why: finding('WaitingForReplicas', `The proxy ${proxy} has no ready pod yet.`) };
  }
  const [faulty] = told.flatMap(({ pod, told: one }) => (one.kind === 'error' ? [{ pod, rule: one.rule }] : []));
  if (faulty !== undefined) {
    const { rule, pod } = faulty;
    const reason = rule.reason ?? 'RuleRefused';
    const where = podsThat('error').length === told.length ? '' : ` (pod ${pod})`;
    const sentence = rule.sentence === undefined ? undefined : `${rule.sentence}${where}`;
    return {
      state: 'Error',
      why: sentence === undefined ? finding(reason, `Rule ${name} is not live${where}.`) : { reason, sentence },
    };
  }
  const silent = podsThat('silent');
  if (silent.length > 0) {
    return { state: 'Unknown', why: finding('ProxyOutOfContact', `No report comes from ${listed(silent)}.`) };
  }
  const behind = podsThat('behind');
  if (behind.length > 0) {
    return {
      state: 'Pending',
      why: finding('WaitingForReplicas', `Rule ${name} is not live on ${listed(behind)} yet.`),
    };
  }
  return { state: 'Synced', why: noteOf(told) };
};

// A live rule may carry a sentence too, such as what its engine does differently.
const noteOf = (told: readonly PodRuleState[]): Finding | undefined => {
  for (const { told: one } of told) {
    if (one.kind === 'live' && one.rule.sentence !== undefined) {
      return { reason: one.rule.reason ?? 'RulesLive', sentence: one.rule.sentence };
    }
  }
  return undefined;
};
