/**
 * An engine without a program: it keeps the rules that it was given, as an engine would, and can be broken on purpose. It
 * moves no bytes, so it is for tests of what stands around an engine; engines themselves pass conformance.ts.
 */
import { EgressError } from '../../api/error.ts';
import type { RuleSet, ServedRule } from '../../core/proxy/served.ts';
import type {
  AppliedRules,
  EngineReading,
  ProxyEngine,
  RefusalWord,
  RuleProblem,
  RuleReading,
} from '../engine/engine.ts';
import { noSources, type Sources } from '../engine/sources.ts';

export class FakeEngine implements ProxyEngine {
  readonly name = 'envoy';
  /** Ports that another process holds. */
  readonly heldPorts = new Set<number>();
  /** Kinds of rules that it cannot do. */
  readonly unable = new Set<ServedRule['kind']>();
  /** Counts that a test has set, by rule id. */
  readonly counts = new Map<string, RuleReading>();
  readonly refused = new Map<RefusalWord, number>();
  /** False while its program is away: it answers nothing, and comes back with what it had. */
  isUp = false;
  /** Rules that it has addresses for; undefined: it looks names up for each connection. */
  resolved: ReadonlySet<string> | undefined;
  /** True when it was told to send clients away. */
  isRetired = false;
  /** Whose addresses clients have, as it was told last. */
  sources: Sources = noSources;
  #live: ReadonlyMap<string, ServedRule> = new Map();
  #revision = '';
  #applies = 0;

  /** The rules that are live, by id. */
  get live(): ReadonlyMap<string, ServedRule> {
    return this.#live;
  }

  get revision(): string {
    return this.#revision;
  }

  /** How often rules were made live. */
  get applies(): number {
    return this.#applies;
  }

  cannot(rule: ServedRule): RuleProblem | undefined {
    return this.unable.has(rule.kind)
      ? { reason: 'EngineCannot', sentence: `The fake cannot do ${rule.kind} rules.` }
      : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.isUp = true;
    const ended = Promise.withResolvers<void>();
    if (signal.aborted) ended.resolve();
    else signal.addEventListener('abort', () => ended.resolve(), { once: true });
    await ended.promise;
    this.isUp = false;
  }

  async apply({ revision, rules }: RuleSet): Promise<AppliedRules> {
    this.#answer();
    const held = (rule: ServedRule): boolean => rule.kind === 'tcp' && this.heldPorts.has(rule.listenPort);
    const problems = rules
      .filter(held)
      .map(({ id }): [string, RuleProblem] => [id, { reason: 'ListenPortTaken', sentence: `${id}: port is taken.` }]);
    this.#live = new Map(rules.filter((rule) => !held(rule)).map((rule) => [rule.id, rule]));
    this.#revision = revision;
    this.#applies += 1;
    return { problems: new Map(problems) };
  }

  async admit(sources: Sources): Promise<void> {
    this.sources = sources;
  }

  async read(): Promise<EngineReading> {
    this.#answer();
    const rules = [...this.counts].filter(([id]) => this.#live.has(id));
    const counted = { rules: new Map(rules), refused: new Map(this.refused) };
    return this.resolved === undefined ? counted : { ...counted, resolved: this.resolved };
  }

  async retire(): Promise<void> {
    this.#answer();
    this.isRetired = true;
  }

  #answer(): void {
    if (!this.isUp) throw new EgressError('ENGINE_FAILED', 'the fake engine is away');
  }
}
