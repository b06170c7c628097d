/**
 * ServedNames tells which rules may have their names in the DNS of the cluster: those that a replica serves. A name that
 * leads to a proxy which does not serve it would cut every pod of the cluster off its destination.
 */
import type { EgressPlan, RulePlan } from '../core/proxy/plan.ts';
import { ruleStateIn } from '../core/proxy/report.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { Replicas } from './replicas.ts';
import type { OperatorSnapshot } from './snapshot.ts';

/** A rollout or a short outage takes no name back: resolvers of pods would keep the other answer for longer than that. */
const graceMs = 60_000;

export class ServedNames {
  readonly #clock: Clock;
  readonly #replicas: Pick<Replicas, 'of' | 'isSettled'>;
  /** id of a rule whose name is published -> when it was last served, as far as is known */
  #servedAtMs = new Map<string, number>();
  #hasDoubt = false;
  /** Only the first look has names of others: one that this process has taken back is not published because it once was. */
  #hasLooked = false;

  constructor(clock: Clock, replicas: Pick<Replicas, 'of' | 'isSettled'>) {
    this.#clock = clock;
    this.#replicas = replicas;
  }

  /** True when a name is published that nobody is known to serve now, and may have to be taken back: no change of any object tells when. */
  get hasDoubt(): boolean {
    return this.#hasDoubt;
  }

  /** Ids of the rules whose names are to be published. `before` are names that were published before this process began. */
  ids({ plan, readyPods }: OperatorSnapshot, before: ReadonlySet<string>): ReadonlySet<string> {
    const nowMs = this.#clock.monotonicMs();
    const servedAtMs = new Map<string, number>();
    this.#hasDoubt = false;
    for (const egress of plan.egresses.values()) {
      for (const rule of egress.rules) {
        if (rule.publish === undefined) continue;
        const service = this.#serviceOf(egress, rule, readyPods);
        const lastMs =
          this.#servedAtMs.get(rule.id) ?? (!this.#hasLooked && before.has(rule.publish) ? nowMs : undefined);
        if (service === 'served') servedAtMs.set(rule.id, nowMs);
        else if (lastMs !== undefined && (service === 'unknown' || nowMs - lastMs < graceMs)) {
          servedAtMs.set(rule.id, lastMs);
          // Also of a replica that is silent: it may speak again and say what it said before, which is no change that anybody tells.
          this.#hasDoubt = true;
        }
      }
    }
    this.#servedAtMs = servedAtMs;
    this.#hasLooked = true;
    return new Set(servedAtMs.keys());
  }

  #serviceOf(
    { view }: EgressPlan,
    { verdict }: RulePlan,
    readyPods: OperatorSnapshot['readyPods'],
  ): 'served' | 'not served' | 'unknown' {
    const pods = readyPods.get(view.proxy) ?? [];
    if (!verdict.ok) return 'not served';
    const told = pods.map((pod) => ruleStateIn(this.#replicas.of(pod), view, verdict.servedBy).kind);
    if (told.includes('live')) return 'served';
    return this.#replicas.isSettled(pods) && !told.includes('silent') ? 'not served' : 'unknown';
  }
}
