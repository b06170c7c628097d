/** The agent as a process. It only wires: what the parts do is in their own files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { loadLibc } from '../dataplane/libc.ts';
import { stateFile } from '../dataplane/state-file.ts';
import { openConfig } from '../runtime/config/source.ts';
import { connect } from '../runtime/kube/connect.ts';
import { EventRecorder } from '../runtime/kube/event-recorder.ts';
import { createMetrics } from '../runtime/metrics/metrics.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { type ExitCode, exitCodes, Lifecycle, onStop, type ProcessPort } from '../runtime/process/lifecycle.ts';
import { createLog, type Log } from '../runtime/process/log.ts';
import { HealthServer } from '../runtime/serve/health.ts';
import { readersOf } from '../runtime/serve/reader-units.ts';
import { Agent } from './agent.ts';
import type { StartHeartbeat } from './failover/failover-client.ts';
import type { AgentOptions } from './flags.ts';
import { Footprint, ownMemory } from './footprint.ts';
import { Heartbeat } from './heartbeat/heartbeat.ts';
import { holderName } from './inputs/settings.ts';
import { cleanNode } from './kernel/clean.ts';
import { openKernel } from './kernel/kernel.ts';
import type { StartMirror } from './mirror/mirror-supervisor.ts';
import { MirrorThread } from './mirror/mirror-thread.ts';
import { createMachineClock } from './thread/machine-clock.ts';

const clock = systemClock;
const random = Math.random;
/** An agent writes a report a second at most, and events. */
const rateLimit = { perSecond: 20, burst: 50 };

/**
 * An agent runs on every node, so memory counts: the space for new objects does not grow. The rest of the heap may, because what
 * it does not need is given back when the node is quiet (footprint.ts), and collecting it all the time took a quarter of the time of a
 * change (bench/README.md). The flag takes effect in a process that runs; one on the command line would be needed wherever somebody starts it.
 */
const heapFlag = '--semi-space-growth-factor=1';

/** Runs the agent until it is told to stop, and ends the process with an exit code of exitCodes. */
export const runAgent = async (options: AgentOptions, version: string, port: ProcessPort): Promise<void> => {
  setFlagsFromString(heapFlag);
  const log = createLog({ process: 'agent', level: options.logLevel }).child({ node: options.node });
  await new Lifecycle({ process: port, clock, log }).run((lifecycle) => start(options, version, lifecycle, log));
};

/** Takes everything of ours off the node. Returns the exit code: a failure when something is left. */
export const runClean = async (options: AgentOptions): Promise<ExitCode> => {
  const log = createLog({ process: 'agent', level: options.logLevel });
  const config = await openConfig(options.configPath, { clock, log });
  const names = { tunnel: config.current.feature.vxlan.name, holder: holderName };
  const kernel = await openKernel({ ...options, names, clock, random, onConflict: () => {} });
  const isClean = await cleanNode({ kernel, stateFolder: options.stateFolder, log });
  return isClean ? exitCodes.stopped : exitCodes.failure;
};

const start = async (options: AgentOptions, version: string, lifecycle: Lifecycle, log: Log): Promise<void> => {
  const { node } = options;
  const libc = await loadLibc();
  const machineClock = createMachineClock(libc);
  const metrics = createMetrics();
  const config = await openConfig(options.configPath, { clock, log, hooks: metrics.config });
  const client = await connect({ ...options, userAgent: `sallyport-agent/${version}`, rateLimit, metrics });
  const events = new EventRecorder({ client, clock, random, controller: 'sallyport.io/agent', instance: node });
  const names = { tunnel: config.current.feature.vxlan.name, holder: holderName };
  const kernel = await openKernel({
    ...options,
    names,
    clock: machineClock,
    random,
    onConflict: (ip, owner) => agent.nodeEvents.claimedToo(ip, owner),
  });
  const { spawn } = lifecycle.tasks;
  const startHeartbeat: StartHeartbeat = (data, hooks) => new Heartbeat(data, hooks);
  const startMirror: StartMirror = (data, hooks) => new MirrorThread(data, hooks);
  const memory = ownMemory(libc, (file) => readFileSync(join('/proc/self', file), 'utf8'));
  const footprint = new Footprint({ clock, memory });
  const { namespace } = options;
  const own = { node, namespace, config, client, kernel, startHeartbeat, startMirror };
  // Pods may wait for this file, as docs/how-to/strict-start.md tells. The folder is gone after a reboot, and the file with it.
  const onHeld = (): void => spawn('ready', stateFile(join(options.stateFolder, 'ready')).write(''));
  const agent = new Agent({
    ...own,
    events,
    metrics,
    clock: machineClock,
    random,
    log,
    spawn,
    onHeld,
    onPass: () => footprint.worked(),
  });
  const who = { ...options, userAgent: `sallyport-agent/${version}`, metrics };
  const health = new HealthServer({
    clock,
    log,
    mayRead: await readersOf(options.pageAuth, who, lifecycle),
    stopping: lifecycle.stopping,
    metrics: metrics.registry,
    readiness: [{ name: 'agent', missing: () => agent.missing().join(', ') || undefined }],
    pages: { '/kernel': agent.kernelPage },
  });
  const port = await health.listen(options.health);
  log.info({ component: 'health' }, `health and metrics on port ${port}`);
  lifecycle.start('health', (signal) => onStop(signal, () => health.close()));
  lifecycle.start('config', (signal) => config.run(signal));
  lifecycle.start('client', (signal) => onStop(signal, () => client.close()));
  lifecycle.start('events', (signal) => events.run(signal));
  lifecycle.start('footprint', (signal) => onStop(signal, async () => footprint.close()));
  lifecycle.start('agent', (signal) => agent.run(signal));
};
