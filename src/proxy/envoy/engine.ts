/**
 * Envoy as a ProxyEngine. Desired state is three files (clusters, listeners, routes) that Envoy reads whenever one is
 * replaced; a resource that is the same as before is not touched. Each update has a version, and Envoy tells for every
 * listener which version is in force or why one was refused: so a rule is called live only when it was seen to be.
 */
import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { EgressError } from '../../api/error.ts';
import { proxyPorts, type RuleSet, type ServedRule } from '../../core/proxy/served.ts';
import { hashText } from '../../core/values/hash.ts';
import { wait } from '../../runtime/process/clock.ts';
import type { AppliedRules, EngineParts, EngineReading, ProxyEngine, RuleProblem } from '../engine/engine.ts';
import { LogTail } from '../engine/log-tail.ts';
import { noSources, SourceIndex, type Sources } from '../engine/sources.ts';
import { AccessLines } from './access-lines.ts';
import { Admin, type EnvoySource, type ListenerState } from './admin.ts';
import { bootstrapOf, type EnvoyFiles } from './bootstrap.ts';
import { type AccessQuestion, runJudge } from './judge.ts';
import { chainNames, HTTP, TLS } from './listeners.ts';
import type { EnvoyMessage } from './message.ts';
import { keepRunning } from './program.ts';
import { readingOf } from './reading.ts';
import { render } from './render.ts';
import { ROUTES } from './routes.ts';
import { filtersOf } from './sources.ts';
import { VersionedSet } from './versioned-set.ts';

const APPLY_LIMIT_MS = 15_000;
/** Names that are slow to resolve do not hold up the answer; their rules begin to serve when they are known. */
const WARMING_LIMIT_MS = 2_000;
const POLL_MS = 10;
const REJECTED_POLLS = 5;

/** Makes an Envoy that is not running yet. */
export const createEnvoy = (parts: EngineParts): ProxyEngine => new Envoy(parts);

class Envoy implements ProxyEngine {
  readonly name = 'envoy';
  readonly #parts: EngineParts;
  readonly #files: EnvoyFiles;
  readonly #admin: Admin;
  readonly #lines: AccessLines;
  readonly #tail: LogTail;
  readonly #hasIpv6 = existsSync('/proc/net/if_inet6');
  readonly #clusters = new VersionedSet();
  readonly #listeners = new VersionedSet();
  readonly #routes = new VersionedSet();
  /** The last apply: one runs at a time. */
  #applying: Promise<unknown> = Promise.resolve();
  #version = 0;
  #isDoubtful = true;
  /** Whether Envoy was given listeners before, and so reads the routes. */
  #hasListeners = false;
  /** Whether the last update of a file was refused, as a whole or in part. */
  readonly #rejects: Record<EnvoySource, boolean> = { clusters: false, listeners: false, routes: false };
  /** How many updates of a file were refused when it was last asked for. */
  readonly #rejections: Record<EnvoySource, number> = { clusters: 0, listeners: 0, routes: 0 };
  #hasFiles: Promise<void> | undefined;
  #rules: Pick<RuleSet, 'rules'> = { rules: [] };
  #ruleById: ReadonlyMap<string, ServedRule> = new Map();
  #sources: Sources = noSources;
  #index = new SourceIndex(noSources);
  /** Name -> what its file of sources says. */
  readonly #written = new Map<string, string>();
  /** The last change of files of sources: one is written at a time. */
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: EngineParts) {
    this.#parts = parts;
    const file = (name: string): string => join(parts.folder, name);
    this.#files = {
      bootstrap: file('bootstrap.json'),
      clusters: file('clusters.json'),
      listeners: file('listeners.json'),
      routes: file('routes.json'),
      accessLog: file('access.log'),
      judge: file('judge.sock'),
      admin: file('admin.sock'),
    };
    this.#admin = new Admin(this.#files.admin);
    this.#lines = new AccessLines(parts.accessLog);
    this.#tail = new LogTail({
      file: this.#files.accessLog,
      clock: parts.clock,
      onLines: (lines) => this.#lines.take(lines),
      // An Envoy that does not answer is asked again as long as it keeps to the old file.
      reopen: () => void this.#admin.reopenLogs().catch(() => {}),
    });
  }

  cannot(): undefined {
    return undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#writeFirstFiles();
    const reading = new AbortController();
    const working = [
      this.#tail.follow(reading.signal),
      runJudge(this.#files.judge, (question) => this.#mayUse(question), reading.signal),
    ];
    try {
      await keepRunning(this.#parts, this.#files.bootstrap, () => this.#tail.restart(), signal);
    } finally {
      // Only now: the last lines are written when the program ends.
      reading.abort();
      await Promise.all(working);
    }
  }

  apply(rules: RuleSet): Promise<AppliedRules> {
    const turn = this.#applying.then(() => this.#apply(rules));
    this.#applying = turn.catch(() => {});
    return turn;
  }

  async admit(sources: Sources): Promise<void> {
    this.#sources = sources;
    this.#index = new SourceIndex(sources);
    await this.#writeSources();
  }

  async read(): Promise<EngineReading> {
    const stats = await this.#admin.stats();
    await this.#tail.read();
    return readingOf(stats, this.#lines.refused);
  }

  retire(): Promise<void> {
    return this.#admin.retire();
  }

  async #apply(rules: RuleSet): Promise<AppliedRules> {
    await this.#writeFirstFiles();
    this.#rules = rules;
    this.#ruleById = new Map(rules.rules.map((rule) => [rule.id, rule]));
    // Before the listeners that read them.
    await this.#writeSources();
    const next = render(rules, {
      routesPath: this.#files.routes,
      accessLogPath: this.#files.accessLog,
      hasIpv6: this.#hasIpv6,
      pathOf: (name) => this.#sourcesPath(name),
    });
    this.#version += 1;
    const deadlineMs = this.#parts.clock.monotonicMs() + APPLY_LIMIT_MS;
    // After an apply that failed on its way nobody knows what Envoy has read: everything is given again.
    const isDoubtful = this.#isDoubtful;
    this.#isDoubtful = true;
    // Destinations come before the ports that lead to them, and go after them.
    const hasNewClusters = this.#clusters.set(next.clusters, this.#version, true);
    if (hasNewClusters || isDoubtful) await this.#bring('clusters', this.#clusters, deadlineMs);
    const clusters = this.#rejects.clusters ? await this.#refusedClusters(deadlineMs) : [];
    const hasNewRoutes = this.#routes.set(new Map([[ROUTES, next.routes]]), this.#version);
    // The first routes are read only when there is a listener that wants them.
    if (!this.#hasListeners) await this.#write('routes', this.#routes);
    else if (hasNewRoutes || isDoubtful) await this.#bring('routes', this.#routes, deadlineMs);
    const hasNewListeners = this.#listeners.set(next.listeners, this.#version);
    if (hasNewListeners || isDoubtful) await this.#bring('listeners', this.#listeners, deadlineMs);
    else await this.#until(deadlineMs, () => this.#admin.versions());
    this.#hasListeners = true;
    const { states, listeners } = await this.#refusedListeners(next.listeners, deadlineMs);
    if (this.#clusters.set(next.clusters, this.#version)) await this.#write('clusters', this.#clusters);
    this.#listeners.retry(listeners);
    this.#clusters.retry(clusters);
    this.#routes.retry(this.#rejects.routes ? [ROUTES] : []);
    this.#isDoubtful = false;
    return { problems: problemsOf(rules, { states, listeners, clusters, hasRoutes: !this.#rejects.routes }) };
  }

  /** Writes a file and waits until Envoy has read it: taken it as a whole, or refused something in it. */
  async #bring(source: EnvoySource, set: VersionedSet, deadlineMs: number): Promise<void> {
    await this.#write(source, set);
    const wanted = String(this.#version);
    let polls = 0;
    await this.#until(deadlineMs, async () => {
      if ((await this.#admin.versions())[source] === wanted) {
        this.#rejects[source] = false;
        return true;
      }
      polls += 1;
      // Asked less often: to find it, Envoy goes through all its counts.
      if (polls % REJECTED_POLLS !== 0) return undefined;
      const rejections = await this.#admin.rejected(source);
      if (rejections === this.#rejections[source]) return undefined;
      // Also when Envoy was started again and counts anew: who was refused is then found out one by one.
      this.#rejections[source] = rejections;
      this.#rejects[source] = true;
      return true;
    });
    if (source !== 'routes') await this.#warm(source, deadlineMs);
  }

  /** Waits until what was brought is in force. Names that are slow to resolve do not hold up the rest. */
  async #warm(source: 'clusters' | 'listeners', deadlineMs: number): Promise<void> {
    const limitMs = Math.min(deadlineMs, this.#parts.clock.monotonicMs() + WARMING_LIMIT_MS);
    await this.#until(deadlineMs, async () =>
      (await this.#admin.warming(source)) === 0 || this.#parts.clock.monotonicMs() > limitMs ? true : undefined,
    );
  }

  async #refusedClusters(deadlineMs: number): Promise<string[]> {
    const brought = await this.#until(deadlineMs, () => this.#admin.clusters());
    return this.#clusters.notIn((name) => brought.get(name));
  }

  /** Who is not in force. When the whole file was taken nobody has to be asked for. */
  async #refusedListeners(listeners: ReadonlyMap<string, EnvoyMessage>, deadlineMs: number): Promise<RefusedListeners> {
    if (!this.#rejects.listeners) return { states: new Map(), listeners: [] };
    const states = await this.#until(deadlineMs, () => this.#admin.listeners());
    const missing = this.#listeners.notIn((name) => states.get(name)?.version);
    // A listener of which only chains changed keeps its old version, so of those without an error the chains are compared.
    const doubtful = missing.filter((name) => states.has(name) && states.get(name)?.error === undefined);
    if (doubtful.length === 0) return { states, listeners: missing };
    const chains = await this.#until(deadlineMs, () => this.#admin.chains(doubtful));
    return {
      states,
      listeners: missing.filter((name) => !isDeepStrictEqual(chains.get(name), chainNames(listeners.get(name)))),
    };
  }

  /** Asks until there is an answer. While Envoy does not answer at all it may be starting. */
  async #until<T>(deadlineMs: number, ask: () => Promise<T | undefined>): Promise<T> {
    let failure: unknown = new EgressError('ENGINE_FAILED', 'Envoy did not take the rules in time');
    while (this.#parts.clock.monotonicMs() < deadlineMs) {
      try {
        const answer = await ask();
        if (answer !== undefined) return answer;
      } catch (error) {
        if (!(error instanceof EgressError)) throw error;
        failure = error;
      }
      await wait(this.#parts.clock, POLL_MS);
    }
    throw failure;
  }

  /** Writes who may use the rules, as far as it is other than before. Envoy reads a file as soon as it is replaced. */
  #writeSources(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      for (const [name, filter] of filtersOf(this.#rules, this.#sources)) {
        const text = JSON.stringify(filter);
        if (this.#written.get(name) === text) continue;
        const path = this.#sourcesPath(name);
        await writeFile(`${path}.new`, `{"version_info":"${hashText(text)}","resources":[${text}]}`);
        await rename(`${path}.new`, path);
        this.#written.set(name, text);
      }
    });
    return this.#writing;
  }

  #mayUse({ client, endpoint, rule }: AccessQuestion): boolean {
    const found = this.#ruleById.get(rule);
    const isAllowed = found !== undefined && this.#index.mayUse(client, found.from);
    if (!isAllowed) {
      const kind = found?.kind === 'http' ? 'sni' : 'tcp';
      const detail = `the client may not use ${rule}`;
      // Envoy writes no line for a connection that it ends before it looks for a server.
      this.#lines.refuse({ time: this.#parts.clock.now().toISOString(), kind, client: endpoint, detail });
    }
    return isAllowed;
  }

  #sourcesPath(name: string): string {
    return join(this.#parts.folder, `sources-${name}.json`);
  }

  /** A started Envoy finds files without rules, not those of an earlier process. */
  #writeFirstFiles(): Promise<void> {
    this.#hasFiles ??= (async () => {
      for (const left of [this.#files.admin, this.#files.accessLog]) await rm(left, { force: true });
      await writeFile(this.#files.bootstrap, JSON.stringify(bootstrapOf(this.#files)));
      await this.#write('clusters', this.#clusters);
      await this.#write('listeners', this.#listeners);
    })();
    return this.#hasFiles;
  }

  async #write(source: EnvoySource, set: VersionedSet): Promise<void> {
    const path = this.#files[source];
    await writeFile(`${path}.new`, set.fileText(this.#version));
    await rename(`${path}.new`, path);
  }
}

interface RefusedListeners {
  readonly states: ReadonlyMap<string, ListenerState>;
  /** Names of those that are not in force as they should be. */
  readonly listeners: readonly string[];
}

interface RefusedResources extends RefusedListeners {
  readonly clusters: readonly string[];
  /** Whether the allow-list was taken. */
  readonly hasRoutes: boolean;
}

/** The rules that are not served because of it. */
const problemsOf = (
  { rules }: RuleSet,
  { states, listeners, clusters, hasRoutes }: RefusedResources,
): Map<string, RuleProblem> => {
  const problems = new Map<string, RuleProblem>();
  if (listeners.length === 0 && clusters.length === 0 && hasRoutes) return problems;
  for (const rule of rules) {
    const way = waysOf(rule).find(({ listener }) => listeners.includes(listener));
    if (way !== undefined) problems.set(rule.id, problemOf(states.get(way.listener), way.port));
    else if (clusters.includes(rule.id)) problems.set(rule.id, destinationRefused);
    else if (rule.kind === 'http' && !hasRoutes) problems.set(rule.id, routesRefused);
  }
  return problems;
};

/** The listeners without which a rule is not served, with their ports. */
const waysOf = (rule: ServedRule): { readonly listener: string; readonly port: number }[] =>
  rule.kind === 'tcp'
    ? [{ listener: rule.id, port: rule.listenPort }]
    : [{ listener: HTTP, port: proxyPorts.http }, ...(rule.isTls ? [{ listener: TLS, port: proxyPorts.tls }] : [])];

const destinationRefused: RuleProblem = {
  reason: 'RuleRefused',
  sentence: 'Envoy refused the destination of the rule; its log says why.',
};

const routesRefused: RuleProblem = {
  reason: 'RuleRefused',
  sentence: 'Envoy refused the list of allowed hosts and keeps the last one; its log says why.',
};

const problemOf = (state: ListenerState | undefined, port: number): RuleProblem => {
  const error = state?.error ?? 'it gave no reason';
  return error.includes('Address already in use')
    ? {
        reason: 'ListenPortTaken',
        sentence: `Port ${port} of the proxy pod is held by another process.`,
      }
    : { reason: 'RuleRefused', sentence: `Envoy refused to listen on port ${port}: ${error}` };
};
