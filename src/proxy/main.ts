/** The proxy as a process. It only wires: what the parts do is in their own files. */
import { randomInt } from 'node:crypto';
import { getServers } from 'node:dns';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { proxyPorts } from '../core/proxy/served.ts';
import { connect } from '../runtime/kube/connect.ts';
import { problemLog } from '../runtime/kube/problem-log.ts';
import { createMetrics } from '../runtime/metrics/metrics.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { Lifecycle, onStop, type ProcessPort } from '../runtime/process/lifecycle.ts';
import { createLog, type Log } from '../runtime/process/log.ts';
import { HealthServer } from '../runtime/serve/health.ts';
import { readersOf } from '../runtime/serve/reader-units.ts';
import { allOf, createProxyCaches } from './caches.ts';
import { outsideResolvers } from './dns/outside.ts';
import { GuardedResolver } from './dns/resolver.ts';
import { serveDns } from './dns/server.ts';
import type { EngineParts, ProxyEngine } from './engine/engine.ts';
import type { EngineName, ProxyOptions } from './flags.ts';
import { fileRuleStore } from './kept-rules.ts';
import { stopLimitMs } from './leave.ts';
import { createProxyMetrics } from './metrics.ts';
import { ProxyReplica } from './replica.ts';

const clock = systemClock;
const random = Math.random;
/** A proxy only reads. */
const rateLimit = { perSecond: 10, burst: 20 };

/** Runs the proxy until it is told to stop, and ends the process with an exit code of exitCodes. */
export const runProxy = async (options: ProxyOptions, version: string, port: ProcessPort): Promise<void> => {
  const log = createLog({ process: 'proxy', level: options.logLevel });
  await new Lifecycle({ process: port, clock, log, stopLimitMs }).run((lifecycle) =>
    start(options, version, lifecycle, log),
  );
};

const start = async (options: ProxyOptions, version: string, lifecycle: Lifecycle, log: Log): Promise<void> => {
  const metrics = createMetrics();
  const client = await connect({ ...options, userAgent: `sallyport-proxy/${version}`, rateLimit, metrics });
  const caches = createProxyCaches({ client, clock, random, onProblem: problemLog(log, clock) });
  for (const [name, cache] of allOf(caches)) metrics.observeInformer(name, cache);
  const guard = createGuard(options, log);
  const dns = await serveDns(guard, { host: '127.0.0.1', port: proxyPorts.dns });
  const folder = join(options.stateFolder, options.engine);
  await mkdir(folder, { recursive: true });
  const parts: EngineParts = {
    program: options.program,
    folder,
    accessLog: (lines) => void process.stdout.write(lines),
    log,
    clock,
  };
  const engine = await createEngine(options.engine, parts, guard);
  const { namespace, name } = options.controller;
  const loop = createProxyMetrics(metrics.instruments, () => replica.report());
  const replica: ProxyReplica = new ProxyReplica({
    controller: `${namespace}/${name}`,
    reservedNames: options.reservedNames,
    caches,
    engine,
    guard,
    kept: fileRuleStore(join(options.stateFolder, 'rules.json')),
    clock,
    log,
    loop,
  });
  const who = { ...options, userAgent: `sallyport-proxy/${version}`, metrics };
  const health = new HealthServer({
    clock,
    log,
    mayRead: await readersOf(options.pageAuth, who, lifecycle),
    stopping: lifecycle.stopping,
    metrics: metrics.registry,
    readiness: [{ name: 'rules', missing: () => replica.missing().join(', ') || undefined }],
    pages: { '/report': replica.reportPage },
  });
  const port = await health.listen(options.report);
  log.info({ component: 'health' }, `report, health and metrics on port ${port}`);
  lifecycle.start('health', (signal) => onStop(signal, () => health.close()));
  lifecycle.start('client', (signal) => onStop(signal, () => client.close()));
  lifecycle.start('guard', (signal) =>
    onStop(signal, async () => {
      guard.stop();
      await dns.close();
    }),
  );
  lifecycle.start('proxy', (signal) => replica.run(signal));
};

const createGuard = ({ nameservers }: ProxyOptions, log: Log): GuardedResolver => {
  // Those of the pod: its DNS policy names resolvers outside the cluster.
  const hosts = nameservers.length > 0 ? nameservers : getServers();
  log.info({ component: 'guard' }, `names are resolved by ${hosts.join(', ')}`);
  const outside = outsideResolvers({ nameservers: hosts.map((host) => ({ host })), clock, randomInt });
  return new GuardedResolver({
    outside,
    clock,
    onRefused: refusalLog(log),
  });
};

/** Engines ask for a name that leads nowhere every second or so; once a minute is enough for people. */
const refusalLog = (log: Log): ((name: string, word: string) => void) => {
  const told = new Map<string, number>();
  return (key, reason) => {
    const nowMs = clock.monotonicMs();
    const last = told.get(`${reason} ${key}`);
    if (last !== undefined && nowMs - last < 60_000) return;
    // A wildcard rule lets clients invent names.
    if (told.size >= 1_000) told.clear();
    told.set(`${reason} ${key}`, nowMs);
    log.info({ component: 'guard', key, reason }, 'a name was refused');
  };
};

/** An engine is loaded when it is asked for. */
const createEngine = async (name: EngineName, parts: EngineParts, guard: GuardedResolver): Promise<ProxyEngine> => {
  if (name === 'envoy') return (await import('./envoy/engine.ts')).createEnvoy(parts);
  // nginx neither tells its open connections to a host nor keeps any to a name: it does both by the addresses of the name.
  return (await import('./nginx/engine.ts')).createNginx({ ...parts, names: guard });
};
