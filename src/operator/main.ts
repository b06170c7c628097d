/**
 * The operator as a process. It only wires: what the parts do is in their own files. Every replica fills its caches and
 * serves admission; the one that holds the lease writes. Losing the lease ends the writing only.
 */
import { randomUUID } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { EgressError } from '../api/error.ts';
import { clientDuring, Leadership, type Term } from '../runtime/control/leadership.ts';
import { kubeLeaseStore } from '../runtime/control/lease-record.ts';
import { connect } from '../runtime/kube/connect.ts';
import { EventRecorder } from '../runtime/kube/event-recorder.ts';
import { problemLog } from '../runtime/kube/problem-log.ts';
import { createMetrics } from '../runtime/metrics/metrics.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { Lifecycle, onStop, type ProcessPort } from '../runtime/process/lifecycle.ts';
import { createLog, type Log } from '../runtime/process/log.ts';
import { HealthServer } from '../runtime/serve/health.ts';
import { withPatience } from '../runtime/serve/patience.ts';
import { readersOf } from '../runtime/serve/reader-units.ts';
import { webhookServing, webhookTrust } from '../runtime/serve/webhook-units.ts';
import { judgeEgress, webhookPath, webhookService, webhookSet } from './admission.ts';
import type { Resolve } from './dns/names.ts';
import { searchDomainsIn } from './dns/search-domains.ts';
import type { OperatorOptions } from './flags.ts';
import { createOperatorCaches } from './inputs/caches.ts';
import { Leader } from './leading.ts';
import { createOperatorMetrics } from './metrics.ts';
import { reportReader } from './replicas.ts';
import { viewOf } from './snapshot.ts';

const leaseName = 'sallyport-operator';
/** A thousand new rules are some thousand objects: the API server's own fairness is the limit, not ours. */
const rateLimit = { perSecond: 500, burst: 1_000 };
const clock = systemClock;
const random = Math.random;

/** Runs the operator until it is told to stop, and ends the process with an exit code of exitCodes. */
export const runOperator = async (options: OperatorOptions, version: string, port: ProcessPort): Promise<void> => {
  const log = createLog({ process: 'operator', level: options.logLevel });
  await new Lifecycle({ process: port, clock, log }).run((lifecycle) => start(options, version, lifecycle, log));
};

/** Never resolves; rejects when the start fails, or when a part finds that it was given what cannot work. */
const start = async (options: OperatorOptions, version: string, lifecycle: Lifecycle, log: Log): Promise<void> => {
  const metrics = createMetrics();
  const client = await connect({ ...options, userAgent: `sallyport-operator/${version}`, rateLimit, metrics });
  const { namespace, proxyNamespaces, dns } = options;
  const identity = `${hostname()}_${randomUUID()}`;
  const caches = createOperatorCaches({
    client,
    clock,
    random,
    onProblem: problemLog(log, clock),
    proxyNamespaces,
    dnsConfigMap: dns?.configMap,
  });
  for (const [name, cache] of caches.all) metrics.observeInformer(name, cache);
  const events = new EventRecorder({ client, clock, random, controller: 'sallyport.io/operator', instance: identity });
  const searchDomains = searchDomainsIn(await readFile('/etc/resolv.conf', 'utf8').catch(() => ''));
  const names = [...options.reservedNames, ...searchDomains];
  const patience = { clock, view: () => viewOf(caches, names), missing: () => caches.missing() };
  const webhooks = {
    client,
    clock,
    random,
    log,
    metrics,
    namespace,
    serviceName: webhookService,
    url: options.webhookUrl,
  };
  const serving = webhookServing(webhooks, options.webhook, { [webhookPath]: withPatience(judgeEgress, patience) });
  const operatorHooks = createOperatorMetrics(metrics.instruments, caches);
  let missing = (): readonly string[] => [];
  let terms = 0;
  const lead = async (term: Term): Promise<void> => {
    terms += 1;
    const writing = clientDuring(client, term);
    const trust = webhookTrust({ ...webhooks, client: writing }, [webhookSet]);
    const leading = new Leader({
      client: writing,
      caches,
      clock,
      log,
      events,
      hooks: operatorHooks,
      settings: { ...options, operatorNamespace: namespace, searchDomains },
      dns: dns && { configMap: dns.configMap, resolve: resolverOf(dns.servers) },
      readReport: reportReader(options.reportTokenFile),
    });
    missing = () => [...trust.missing(), ...leading.missing()];
    await Promise.all([trust.run(term.signal), leading.run(term.signal)]);
    missing = () => [];
  };
  const hooks = metrics.lease(leaseName);
  const store = kubeLeaseStore(client, { namespace, name: leaseName });
  const leadership = new Leadership({ store, identity, clock, random, log, hooks, lead });
  const who = { ...options, userAgent: `sallyport-operator/${version}`, metrics };
  const health = new HealthServer({
    clock,
    log,
    mayRead: await readersOf(options.pageAuth, who, lifecycle),
    stopping: lifecycle.stopping,
    metrics: metrics.registry,
    readiness: [
      { name: 'caches', missing: () => joined(caches.missing()) },
      { name: 'admission', missing: () => joined(serving.missing()) },
      // In later terms the process has been serving for long: what it catches up on must not stop its webhooks.
      { name: 'operator', missing: () => (terms === 1 ? joined(missing()) : undefined) },
    ],
  });
  const port = await health.listen(options.health);
  log.info({ component: 'health' }, `health and metrics on port ${port}`);
  const refused = Promise.withResolvers<never>();
  lifecycle.start('health', (signal) => onStop(signal, () => health.close()));
  lifecycle.start('client', (signal) => onStop(signal, () => client.close()));
  lifecycle.start('caches', (signal) => caches.run(signal));
  lifecycle.start('events', (signal) => events.run(signal));
  lifecycle.start('admission', (signal) =>
    serving.run(signal).catch((error: unknown) => {
      // The port may be in use, which turns out when there is a certificate to serve with.
      if (!(error instanceof EgressError)) throw error;
      refused.reject(error);
    }),
  );
  lifecycle.start('leadership', (signal) => leadership.run(signal));
  return refused.promise;
};

/** Asks the DNS of the cluster; a name without addresses is an empty list. */
const resolverOf = (servers: readonly string[]): Resolve => {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  const ask = async (answer: Promise<string[]>): Promise<string[]> =>
    answer.catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return [];
      throw error;
    });
  return async (name) => (await Promise.all([ask(resolver.resolve4(name)), ask(resolver.resolve6(name))])).flat();
};

const joined = (lacks: readonly string[]): string | undefined => (lacks.length === 0 ? undefined : lacks.join(', '));
