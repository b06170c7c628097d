/**
 * The controller as a process. It only wires: what the parts do is in their own files. Every replica fills its caches
 * and serves admission; the one that holds the lease runs the control loops. Losing the lease ends the loops only.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { EgressError } from '../api/error.ts';
import { type FollowedConfig, openConfig } from '../runtime/config/source.ts';
import { Leadership, type Term } from '../runtime/control/leadership.ts';
import { kubeLeaseStore } from '../runtime/control/lease-record.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { connect } from '../runtime/kube/connect.ts';
import { EventRecorder } from '../runtime/kube/event-recorder.ts';
import { problemLog } from '../runtime/kube/problem-log.ts';
import { createMetrics, type Metrics } from '../runtime/metrics/metrics.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { Lifecycle, onStop, type ProcessPort } from '../runtime/process/lifecycle.ts';
import { createLog, type Log } from '../runtime/process/log.ts';
import { HealthServer } from '../runtime/serve/health.ts';
import { readersOf } from '../runtime/serve/reader-units.ts';
import { type AdmissionOptions, admissionServer, webhookLoop } from './admission/control-loop.ts';
import { clusterInfoLoop } from './cluster-info/control-loop.ts';
import { type ElectorateLoop, electorateLoop } from './electorate/control-loop.ts';
import { observeElectorate } from './electorate/gauges.ts';
import { failoverRecordsLoop } from './failover-records/control-loop.ts';
import type { ControllerSettings } from './flags.ts';
import { type ControllerCaches, createControllerCaches } from './loop/caches.ts';
import type { ControlLoop, ControlLoopDeps, ControllerSite } from './loop/control-loop.ts';
import { followMembers, type Members } from './membership/members.ts';
import { type PlanLoop, planLoop } from './plan/control-loop.ts';
import { observePlan } from './plan/gauges.ts';
import { Heartbeats } from './plan/heartbeats.ts';
import { slicesLoop } from './slices/control-loop.ts';
import { startupTaintLoop } from './startup-taint/control-loop.ts';
import { controlLoopDepsDuring, membersDuring } from './term.ts';

/** The name of the Lease. */
const leaseName = 'sallyport-controller';
/** A thousand new policies are a thousand statuses: the API server's own fairness is the limit, not ours. */
const rateLimit = { perSecond: 500, burst: 1_000 };
const clock = systemClock;
const random = Math.random;

/** Runs the controller until it is told to stop, and ends the process with an exit code of exitCodes. */
export const runController = async (options: ControllerSettings, version: string, port: ProcessPort): Promise<void> => {
  const log = createLog({ process: 'controller', level: options.logLevel });
  await new Lifecycle({ process: port, clock, log }).run((lifecycle) => start(options, version, lifecycle, log));
};

/** What the process is made of. */
interface Units {
  readonly config: FollowedConfig;
  readonly client: KubeClient;
  readonly caches: ControllerCaches;
  readonly events: EventRecorder;
  readonly leadership: Leadership;
  readonly health: HealthServer;
  /** The part of every replica. */
  readonly admission: ControlLoop;
}

/** The parts of the leader, made anew for each term. */
interface LeaderLoops {
  readonly plan: PlanLoop;
  readonly electorate: ElectorateLoop;
  missing(): string[];
  run(signal: AbortSignal): Promise<void>;
}

/** Never resolves; rejects when the start fails, or when a part finds that it was given what cannot work. */
const start = async (options: ControllerSettings, version: string, lifecycle: Lifecycle, log: Log): Promise<void> => {
  const units = await assemble(options, version, lifecycle, log);
  const port = await units.health.listen(options.health);
  log.info({ component: 'health' }, `health and metrics on port ${port}`);
  await launch(units, lifecycle);
};

const assemble = async (
  options: ControllerSettings,
  version: string,
  lifecycle: Lifecycle,
  log: Log,
): Promise<Units> => {
  const metrics = createMetrics();
  const config = await openConfig(options.configPath, { clock, log, hooks: metrics.config });
  const { namespace, webhook } = options;
  const site: ControllerSite = { identity: `${hostname()}_${randomUUID()}`, namespace, webhook };
  const client = await connect({ ...options, userAgent: `sallyport-controller/${version}`, rateLimit, metrics });
  const caches = observedCaches(client, log, metrics);
  const reporter = { controller: 'sallyport.io/controller', instance: site.identity };
  const events = new EventRecorder({ client, clock, random, ...reporter });
  const deps: ControlLoopDeps = { client, caches, config, site, clock, random, log, metrics, events };
  const members = followMembers(caches);
  const heartbeats = new Heartbeats(caches, clock);
  const reach = { url: options.webhookUrl };
  const admission = admissionServer(deps, reach);
  let leading: LeaderLoops | undefined;
  let terms = 0;
  observePlan(metrics, () => leading?.plan.decision?.plan);
  observeElectorate(metrics, () => leading?.electorate.last);
  const lead = async (term: Term): Promise<void> => {
    terms += 1;
    leading = leaderLoops(controlLoopDepsDuring(term, deps), {
      members: membersDuring(term, members),
      heartbeats,
      reach,
    });
    await leading.run(term.signal);
    leading = undefined;
  };
  const store = kubeLeaseStore(client, { namespace, name: leaseName });
  const hooks = metrics.lease(leaseName);
  const leadership = new Leadership({ store, identity: site.identity, clock, random, log, hooks, lead });
  const who = { ...options, userAgent: `sallyport-controller/${version}`, metrics };
  const health = new HealthServer({
    clock,
    log,
    mayRead: await readersOf(options.pageAuth, who, lifecycle),
    stopping: lifecycle.stopping,
    metrics: metrics.registry,
    readiness: [
      { name: 'caches', missing: () => joined(caches.missing()) },
      { name: admission.name, missing: () => joined(admission.missing()) },
      // In later terms the process has been serving for long: what the loops catch up on must not stop its webhooks.
      { name: 'loops', missing: () => (terms === 1 ? joined(leading?.missing() ?? []) : undefined) },
    ],
  });
  return { config, client, caches, events, leadership, health, admission };
};

const leaderLoops = (
  deps: ControlLoopDeps,
  { members, heartbeats, reach }: { members: Members; heartbeats: Heartbeats; reach: AdmissionOptions },
): LeaderLoops => {
  const plan = planLoop(deps, members, heartbeats);
  const electorate = electorateLoop(deps, plan);
  const all = [
    plan,
    slicesLoop(deps, members),
    clusterInfoLoop(deps),
    electorate,
    failoverRecordsLoop({ ...deps, randomBytes }),
    startupTaintLoop(deps),
    webhookLoop(deps, reach),
  ];
  return {
    plan,
    electorate,
    missing: () => all.flatMap((part) => part.missing().map((lack) => `${part.name}: ${lack}`)),
    run: async (signal) => {
      await Promise.all(all.map((part) => part.run(signal)));
    },
  };
};

/** Starts the units in the order of need; they stop in reverse. Rejects when a part cannot work as it was asked to. */
const launch = (units: Units, lifecycle: Lifecycle): Promise<never> => {
  const { config, client, caches, events, leadership, health, admission } = units;
  const refused = Promise.withResolvers<never>();
  lifecycle.start('health', (signal) => onStop(signal, () => health.close()));
  lifecycle.start('config', (signal) => config.run(signal));
  lifecycle.start('client', (signal) => onStop(signal, () => client.close()));
  lifecycle.start('caches', (signal) => caches.run(signal));
  lifecycle.start('events', (signal) => events.run(signal));
  lifecycle.start(admission.name, (signal) =>
    admission.run(signal).catch((error: unknown) => {
      // The webhook port may be in use, which turns out when there is a certificate to serve with.
      if (!(error instanceof EgressError)) throw error;
      refused.reject(error);
    }),
  );
  lifecycle.start('leadership', (signal) => leadership.run(signal));
  return refused.promise;
};

const observedCaches = (client: KubeClient, log: Log, metrics: Metrics): ControllerCaches => {
  const caches = createControllerCaches({
    client,
    clock,
    random,
    onProblem: problemLog(log, clock),
  });
  for (const [name, cache] of caches.all) metrics.observeInformer(name, cache);
  return caches;
};

const joined = (lacks: readonly string[]): string | undefined => (lacks.length === 0 ? undefined : lacks.join(', '));
