/**
 * ProxyReplica is one pod of an egress proxy, joined: caches tell the loop that something changed, a pass gives the rules that
 * are wanted to the guard and to the engine, and the report says what became of them. Nothing is served before the caches
 * are filled; after that the last rules stay in force whatever happens to the API server.
 */
import { EgressError } from '../api/error.ts';
import type { ProxyReport } from '../api/proxy-report.ts';
import { reasons } from '../api/reasons.ts';
import type { RuleSet } from '../core/proxy/served.ts';
import { Loop, type LoopHooks, type PassResult } from '../runtime/control/loop.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { Page } from '../runtime/serve/health.ts';
import { allOf, missingOf, type ProxyCaches } from './caches.ts';
import { type DesiredRules, DesiredRulesReader } from './desired.ts';
import type { ProxyEngine, RuleProblem } from './engine/engine.ts';
import type { Sources } from './engine/sources.ts';
import { followSources } from './follow-sources.ts';
import type { RuleStore } from './kept-rules.ts';
import { leave } from './leave.ts';
import { Names, type NameTarget } from './names.ts';
import { Readings } from './readings.ts';
import { hasWaiting, type ReportInput, type RulesInEngine, reportOf } from './report.ts';

/** The guarding resolver, as far as it is needed here. */
export interface GuardingResolver {
  /** From now on only names of these rules lead anywhere. */
  set(rules: RuleSet): void;
  /** From now on these are the addresses of clients. */
  admit(sources: Sources): void;
  check(name: string): Promise<NameTarget>;
  /** Questions that were refused, by a short word for why. */
  readonly refused: ReadonlyMap<string, number>;
}

/** What a replica needs. */
export interface ProxyReplicaDeps {
  /** `namespace/name` of the BCSEgressController. */
  readonly controller: string;
  /** Names of the cluster itself, which no rule may be about. */
  readonly reservedNames: readonly string[];
  readonly caches: ProxyCaches;
  readonly engine: ProxyEngine;
  readonly guard: GuardingResolver;
  /** What was in force when the process before this one ended; served until the caches are filled. */
  readonly kept: RuleStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly loop?: LoopHooks;
}

/** A replica. Make one per process and `run` it once. */
export class ProxyReplica {
  readonly reportPage: Page;
  readonly #deps: ProxyReplicaDeps;
  readonly #gathering: DesiredRulesReader;
  readonly #loop: Loop;
  readonly #names: Names;
  readonly #readings: Readings;
  #inForce: RulesInEngine | undefined;

  constructor(deps: ProxyReplicaDeps) {
    const { caches, controller, reservedNames, engine, guard, clock, loop } = deps;
    this.#deps = deps;
    this.#gathering = new DesiredRulesReader(caches, controller, reservedNames);
    this.#loop = new Loop({ clock, pass: () => this.#pass(), hooks: loop ?? { passed: () => {} } });
    this.#readings = new Readings(engine, clock, () => {
      const input = this.#reportInput();
      return input !== undefined && hasWaiting(input);
    });
    this.#names = new Names({
      check: (name) => guard.check(name),
      clock,
      onChange: (name, problem) => this.#tellName(name, problem),
    });
    this.reportPage = async () => {
      const report = this.report();
      return report === undefined
        ? { status: 503, contentType: 'text/plain; charset=utf-8', body: `${this.missing().join(', ')}\n` }
        : { status: 200, contentType: 'application/json', body: `${JSON.stringify(report)}\n` };
    };
  }

  /** What is not done yet before rules are live; empty when the replica is ready. */
  missing(): string[] {
    if (this.#inForce === undefined) {
      const caches = missingOf(this.#deps.caches);
      return caches.length > 0 ? caches : ['the first rules'];
    }
    return this.#readings.isAnswering ? [] : [`an answer of ${this.#deps.engine.name}`];
  }

  /** How the replica stands; undefined before the first rules are in force. */
  report(): ProxyReport | undefined {
    const input = this.#reportInput();
    return input === undefined ? undefined : reportOf(input);
  }

  #reportInput(): ReportInput | undefined {
    const { engine, guard } = this.#deps;
    if (this.#inForce === undefined) return undefined;
    return {
      engine: engine.name,
      inForce: this.#inForce,
      reading: this.#readings.last,
      noteOf: (rule) => engine.note?.(rule),
      nameFinding: (name) => this.#names.finding(name),
      guarded: guard.refused,
    };
  }

  /** Serves until the signal is aborted, then lets connections end. Rejects only for bugs and when the engine cannot start. */
  async run(signal: AbortSignal): Promise<void> {
    const { caches, engine } = this.#deps;
    const serving = new AbortController();
    const parts = [
      engine.run(serving.signal),
      this.#readings.run(serving.signal),
      this.#names.run(serving.signal),
      this.#followSources(serving.signal),
      ...allOf(caches).map(([, cache]) => cache.run(signal)),
      this.#work(signal).then(() => this.#leave(serving)),
    ];
    try {
      await Promise.all(parts);
    } finally {
      serving.abort();
    }
  }

  #followSources(signal: AbortSignal): Promise<void> {
    const { caches, engine, guard, clock, log } = this.#deps;
    const admit = async (sources: Sources): Promise<void> => {
      guard.admit(sources);
      await engine.admit(sources);
    };
    return followSources({ pods: caches.pods, clock, log, admit }, signal);
  }

  async #work(signal: AbortSignal): Promise<void> {
    const all = allOf(this.#deps.caches);
    await this.#restore();
    // The caches reject when they end before they are filled, which is no failure of ours.
    const isFilled = await Promise.all(all.map(([, cache]) => cache.synced)).then(
      () => true,
      () => false,
    );
    if (!isFilled || signal.aborted) return;
    // Pods come and go without a change of rules.
    const unfollow = all
      .filter(([name]) => name !== 'pods')
      .map(([, cache]) => cache.subscribe(() => this.#loop.touch()));
    this.#loop.touch();
    await this.#loop.run(signal);
    for (const end of unfollow) end();
  }

  async #leave(serving: AbortController): Promise<void> {
    const { clock, engine, log } = this.#deps;
    if (this.#inForce !== undefined) await leave({ clock, engine, log, readings: this.#readings });
    serving.abort();
  }

  /** A process that ended while the API server is away must not take the rules with it. */
  async #restore(): Promise<void> {
    const { kept, controller } = this.#deps;
    const wanted = await kept.read(controller);
    if (wanted !== undefined) await this.#apply(wanted);
  }

  async #pass(): Promise<PassResult> {
    const wanted = this.#gathering.gather();
    const before = this.#inForce;
    if (before?.wanted.rules.revision === wanted.rules.revision && !mayHeal(before)) {
      this.#inForce = { ...before, wanted };
      return 'done';
    }
    const result = await this.#apply(wanted);
    if (this.#inForce?.wanted === wanted) await this.#deps.kept.write(wanted);
    return result;
  }

  async #apply(wanted: DesiredRules): Promise<PassResult> {
    const { engine, guard, log } = this.#deps;
    // Before the engine: a new rule finds its name, and a name that no rule has any more leads nowhere at once.
    guard.set(wanted.rules);
    this.#names.set(wanted.rules);
    const refused = wanted.rules.rules.flatMap((rule): [string, RuleProblem][] => {
      const problem = engine.cannot(rule);
      return problem === undefined ? [] : [[rule.id, problem]];
    });
    const cannot = new Map(refused);
    const rules = { ...wanted.rules, rules: wanted.rules.rules.filter(({ id }) => !cannot.has(id)) };
    try {
      const { problems } = await engine.apply(rules);
      this.#take({ wanted, problems: new Map([...cannot, ...problems]) });
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      log.error({ component: 'engine', reason: error.code }, error.message);
      return 'again';
    }
    await this.#readings.read();
    return this.#inForce !== undefined && mayHeal(this.#inForce) ? 'again' : 'done';
  }

  #take(inForce: RulesInEngine): void {
    const { log } = this.#deps;
    const before = this.#inForce;
    for (const [rule, { reason, sentence }] of inForce.problems) {
      if (before?.problems.get(rule)?.sentence !== sentence)
        log.warn({ component: 'engine', key: rule, reason }, sentence);
    }
    const { revision, rules } = inForce.wanted.rules;
    if (before?.wanted.rules.revision !== revision) {
      const { set, removed } = changed(before?.wanted, inForce.wanted);
      const live = rules.length - inForce.problems.size;
      log.info({ component: 'engine', count: live }, `rules are live: ${set} set, ${removed} removed (${revision})`);
    }
    this.#inForce = inForce;
  }

  #tellName(name: string, problem: RuleProblem | undefined): void {
    const { log } = this.#deps;
    if (problem === undefined) log.info({ component: 'names', key: name }, 'the name leads somewhere');
    else log.warn({ component: 'names', key: name, reason: problem.reason }, problem.sentence);
  }
}

/** True when a rule is not live for a reason that may pass by itself, such as a port that somebody else holds. */
const mayHeal = ({ problems }: RulesInEngine): boolean =>
  [...problems.values()].some(({ reason }) => reasons[reason].fault === 'world');

/** How many rules are new or other than before, and how many are gone. */
const changed = (
  before: DesiredRules | undefined,
  after: DesiredRules,
): { readonly set: number; readonly removed: number } => {
  const texts = (wanted: DesiredRules | undefined) =>
    new Map((wanted?.rules.rules ?? []).map((rule) => [rule.id, JSON.stringify(rule)]));
  const old = texts(before);
  const now = texts(after);
  return {
    set: [...now].filter(([id, text]) => old.get(id) !== text).length,
    removed: [...old.keys()].filter((id) => !now.has(id)).length,
  };
};
