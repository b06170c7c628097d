/**
 * nginx as an engine. A change is a new generation: rendered, tested by the program itself, put in place in one step, and
 * watched until it is live; what goes wrong on the way costs the rules that are guilty, or the change, never what serves.
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { EgressError } from '../../api/error.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { HostPattern, RuleSet, ServedRule } from '../../core/proxy/served.ts';
import { messageOf } from '../../runtime/process/bug.ts';
import { wait } from '../../runtime/process/clock.ts';
import type { AppliedRules, EngineParts, EngineReading, ProxyEngine, RuleProblem } from '../engine/engine.ts';
import { LogTail } from '../engine/log-tail.ts';
import { cannot, cannotTogether, note } from './ability.ts';
import { Counts } from './counts.ts';
import { Drain, type DrainDeps } from './drain.ts';
import { Generations } from './generations.ts';
import { findGuilty } from './guilty.ts';
import { LogReader } from './log-reader.ts';
import { areAmong, portsOf, without } from './part.ts';
import { endLeftover, type Master, readBuild, startMaster, testConfiguration } from './program.ts';
import { foreignPorts, lastError, missingPorts, reload } from './reload.ts';
import { accessLogs, type NginxConfig, type NginxSettings, render, renderEmpty } from './render.ts';
import { RuleIds } from './rule-ids.ts';
import { readSockets } from './sockets.ts';

/** The guarding resolver, as far as we need it beside nginx's questions over DNS. */
export interface NameSource {
  /** Addresses that a host was last seen to have; never waits. */
  addressesAt(host: HostPattern): readonly Ip[];
}

/** What nginx is made of. Without `names` open connections of HTTP rules for names are not counted. */
export interface NginxParts extends EngineParts {
  readonly names?: NameSource;
  /** How many older generations may finish their connections at the same time, and how long a change waits for room. */
  readonly draining?: Pick<DrainDeps, 'most' | 'waitMs'>;
  /** How many processes serve; one for each core if it is not said. */
  readonly workers?: number;
}

/** Connections of an older generation may go on for so long; a change never waits for them. */
const DRAIN_SECONDS = 86_400;
/** And only for so long when a rule is gone or changed: one of its connections may be among them. */
const GONE_MS = 3_600_000;
/** The last lines of a rule that is gone are read by then, and its counts are forgotten. */
const FORGET_MS = 600_000;
const START_LIMIT_MS = 10_000;
const STOP_LIMIT_MS = 5_000;
/** How often generations are looked at whose time is over. */
const LATE_EVERY_MS = 2_000;
/** A master that ends again and again is started less and less often. */
const RESTART_MS = { first: 100, most: 5_000, steady: 10_000 } as const;
/** Ports are looked at before a reload; one that is taken in between costs another round. */
const MAX_ROUNDS = 4;

/** The engine; nothing runs before `run`. */
export const createNginx = (parts: NginxParts): ProxyEngine => new Nginx(parts);

class Nginx implements ProxyEngine {
  readonly name = 'nginx';
  readonly #parts: NginxParts;
  readonly #generations: Generations;
  readonly #counts = new Counts();
  readonly #drain: Drain;
  readonly #tails: readonly LogTail[];
  readonly #ids = new RuleIds(GONE_MS + FORGET_MS);
  #settings: NginxSettings | undefined;
  #master: Master | undefined;
  #isFailed: EgressError | undefined;
  #wanted: RuleSet | undefined;
  #live: { readonly generation: string; readonly rules: readonly ServedRule[] } = { generation: '', rules: [] };
  /** Changes wait for each other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: NginxParts) {
    const { folder, clock, log } = parts;
    this.#parts = parts;
    this.#generations = new Generations(folder);
    this.#drain = new Drain({ clock, log, ...parts.draining });
    const reader = new LogReader({
      idOf: (key) => this.#ids.idOf(key),
      counts: this.#counts,
      handOn: parts.accessLog,
    });
    this.#tails = accessLogs(folder).map(
      (file) =>
        new LogTail({
          file,
          clock,
          onLines: (lines) => reader.take(lines),
          reopen: () => this.#master?.signal('SIGUSR1'),
        }),
    );
  }

  cannot(rule: ServedRule): RuleProblem | undefined {
    return cannot(rule);
  }

  note(rule: ServedRule): string | undefined {
    return note(rule);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { program, folder, clock, log, workers = availableParallelism() } = this.#parts;
    const counting = new AbortController();
    const working = [...this.#tails.map((tail) => tail.follow(counting.signal)), this.#endLate(counting.signal)];
    try {
      const { streamModule } = await readBuild(program);
      this.#settings = {
        folder,
        streamModule,
        workers,
        hasIpv6: existsSync('/proc/net/if_inet6'),
        isRoot: process.getuid?.() === 0,
        drainSeconds: DRAIN_SECONDS,
      };
      await endLeftover(folder);
      await this.#generations.clear();
      let pauseMs: number = RESTART_MS.first;
      while (!signal.aborted) {
        const startedMs = clock.monotonicMs();
        const master = await this.#start(this.#settings);
        const how = await master.endedOr(signal);
        this.#master = undefined;
        if (how === undefined) {
          await master.stop(STOP_LIMIT_MS);
          break;
        }
        const words = (await lastError(folder)) ?? 'its log does not say why';
        log.error({ component: 'nginx' }, `nginx ended with ${how} and is started again: ${words}`);
        await master.abandon(2_000);
        pauseMs =
          clock.monotonicMs() - startedMs > RESTART_MS.steady
            ? RESTART_MS.first
            : Math.min(pauseMs * 2, RESTART_MS.most);
        await wait(clock, pauseMs, signal);
      }
    } catch (error) {
      this.#isFailed = error instanceof EgressError ? error : undefined;
      throw error;
    } finally {
      // Only now: the last lines are written when the program ends.
      counting.abort();
      await Promise.all(working);
    }
  }

  apply(rules: RuleSet): Promise<AppliedRules> {
    this.#wanted = rules;
    return this.#inTurn(() => this.#apply(rules));
  }

  /** The guarding resolver is told by others, and asked for each connection. */
  async admit(): Promise<void> {}

  async read(): Promise<EngineReading> {
    const master = this.#master;
    if (master === undefined || (await master.generation()) === undefined) throw this.#failed('nginx does not answer');
    for (const tail of this.#tails) await tail.read();
    const sockets = readSockets(master.pid);
    return this.#counts.reading(this.#live.rules, sockets, (host) => this.#parts.names?.addressesAt(host) ?? []);
  }

  async retire(): Promise<void> {
    if (this.#settings === undefined || this.#wanted === undefined) return;
    this.#settings = { ...this.#settings, isRetiring: true };
    await this.apply(this.#wanted);
  }

  /** Starts with a configuration that listens nowhere, which cannot fail; the rules come by the same way as any change. */
  async #start(settings: NginxSettings): Promise<Master> {
    const { program, folder, clock } = this.#parts;
    await this.#generations.clearSockets();
    const empty = renderEmpty(settings);
    await this.#generations.write(empty);
    await this.#generations.choose(empty.generation);
    this.#live = { generation: empty.generation, rules: [] };
    const master = await startMaster(program, folder, this.#generations.currentFile, clock);
    this.#master = master;
    this.#applyAgain();
    return master;
  }

  /** Puts the wanted rules in force without a change of them. */
  #applyAgain(): void {
    const wanted = this.#wanted;
    if (wanted === undefined) return;
    this.#inTurn(() => this.#apply(this.#wanted ?? wanted)).catch((error: unknown) =>
      this.#parts.log.error({ component: 'nginx' }, `the rules are not live after a restart: ${messageOf(error)}`),
    );
  }

  async #apply(rules: RuleSet): Promise<AppliedRules> {
    const master = await this.#up();
    const problems = new Map(cannotTogether(rules));
    for (const id of this.#ids.want(rules.rules, this.#parts.clock.monotonicMs())) this.#counts.forget(id);
    for (const rule of rules.rules) {
      const problem = cannot(rule);
      if (problem !== undefined) problems.set(rule.id, problem);
    }
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      this.#refuseForeign(master, rules, problems);
      const rendered = await this.#tested(rules, problems);
      const served = without(rules, problems);
      const ports = portsOf(served);
      if (rendered.generation === this.#live.generation && missingPorts(master.pid, ports).length === 0) {
        return { problems };
      }
      await this.#drain.makeRoom(master);
      const before = await this.#generations.choose(rendered.generation);
      const { folder, clock } = this.#parts;
      const reloaded = await reload(master, folder, { generation: rendered.generation, ports }, clock);
      if (reloaded.kind === 'live') {
        if (!areAmong(this.#live.rules, served.rules)) this.#drain.limit(GONE_MS);
        this.#live = { generation: rendered.generation, rules: served.rules };
        await this.#generations.keep([rendered.generation]);
        return { problems };
      }
      // nginx goes on with what it had; a restart must not read what it refused.
      if (before !== undefined) await this.#generations.choose(before);
      if (reloaded.kind === 'failed') throw this.#failed(reloaded.sentence);
      for (const [port, words] of reloaded.ports) this.#refusePort(rules, problems, port, words);
    }
    throw this.#failed('the ports of the rules change hands faster than they can be taken');
  }

  /** Takes rules out whose port somebody else listens on: nginx would refuse all of them for one. */
  #refuseForeign(master: Master, rules: RuleSet, problems: Map<string, RuleProblem>): void {
    for (const port of foreignPorts(master.pid, portsOf(without(rules, problems)))) {
      this.#refusePort(rules, problems, port, 'another process of the pod listens on it');
    }
  }

  #refusePort(rules: RuleSet, problems: Map<string, RuleProblem>, port: number, words: string): void {
    const rule = rules.rules.find((one) => one.kind === 'tcp' && one.listenPort === port);
    if (rule === undefined) throw this.#failed(`port ${port} of the proxy itself cannot be had: ${words}`);
    problems.set(rule.id, { reason: 'ListenPortTaken', sentence: `port ${port} cannot be had: ${words}` });
  }

  /** A configuration of the rules that the program accepts; those that it does not are told. */
  async #tested(rules: RuleSet, problems: Map<string, RuleProblem>): Promise<NginxConfig> {
    const settings = this.#settings;
    if (settings === undefined) throw this.#failed('nginx was not started');
    const { program, folder } = this.#parts;
    const candidate = (part: readonly ServedRule[]): NginxConfig => render({ ...rules, rules: part }, settings);
    const { rules: asked } = without(rules, problems);
    const whole = candidate(asked);
    if (whole.generation === this.#live.generation) return whole;
    const test = async (part: readonly ServedRule[]): Promise<string | undefined> =>
      testConfiguration(program, folder, await this.#generations.write(candidate(part)));
    const { passing, guilty } = await findGuilty(asked, test).catch((error: unknown) => {
      throw this.#failed(`nginx refuses a configuration without rules: ${messageOf(error)}`);
    });
    for (const { rule, words } of guilty) {
      problems.set(rule.id, { reason: 'RuleRefused', sentence: `nginx refuses the rule: ${words}` });
    }
    return candidate(passing);
  }

  /** The master, when its first generation answers. */
  async #up(): Promise<Master> {
    const { clock } = this.#parts;
    const endsAtMs = clock.monotonicMs() + START_LIMIT_MS;
    for (;;) {
      if (this.#isFailed !== undefined) throw this.#isFailed;
      const master = this.#master;
      if (master?.isAlive && (await master.generation()) !== undefined) return master;
      if (clock.monotonicMs() > endsAtMs) throw this.#failed('nginx does not answer');
      await wait(clock, 20);
    }
  }

  /** A rule that is gone must not keep its connections for ever. */
  async #endLate(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await wait(this.#parts.clock, LATE_EVERY_MS, signal);
      const master = this.#master;
      if (master !== undefined && this.#drain.isLate) await this.#inTurn(() => this.#drain.endLate(master));
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  #failed(sentence: string): EgressError {
    return new EgressError('ENGINE_FAILED', sentence);
  }
}
