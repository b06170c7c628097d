/** An agent that runs in a test, against any API server and on any kernel. */
import assert from 'node:assert/strict';
import { Config } from '../../api/config.ts';
import type { ServerAccess } from '../../runtime/kube/access.ts';
import type { EventFacts } from '../../runtime/kube/event-recorder.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import { createMetrics } from '../../runtime/metrics/metrics.ts';
import { type Clock, systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { Agent, type AgentDeps } from '../agent.ts';
import type { Kernel } from '../kernel/kernel.ts';

/** A running agent. */
export interface RunningAgent {
  readonly agent: Agent;
  /** Events that it recorded. */
  readonly events: readonly EventFacts[];
  /** The text of its metrics. */
  metrics(): Promise<string>;
  /** How often it has said that the kernel holds what it should. */
  held(): number;
  /** Resolves when the kernel holds what it should. */
  ready(): Promise<void>;
  /** Stops it; rejects when it has failed. */
  stop(): Promise<void>;
}

const feature = { enableIPv6: true, gatewayFailover: { tunnelUpdatePeriod: 1 } };

/** Starts the agent of node `a`; it reports every second. */
export const startAgent = (
  access: ServerAccess,
  kernel: Kernel,
  clock: Clock,
  threads: Partial<Pick<AgentDeps, 'startHeartbeat' | 'startMirror'>> = {},
): RunningAgent => {
  const metrics = createMetrics();
  const events: EventFacts[] = [];
  // The machine's clock: time limits of calls must not shrink where polls are made to pass faster.
  const client = createKubeClient({ access, userAgent: 'test', clock: systemClock, random: Math.random });
  const failure = Promise.withResolvers<never>();
  let held = 0;
  const agent = new Agent({
    node: 'a',
    namespace: 'sallyport',
    startHeartbeat: () => assert.fail('there is no key'),
    startMirror: () => assert.fail('there is no key'),
    config: { current: Config.parse({ feature }), changed: () => () => {} },
    client,
    kernel,
    events: { record: (facts) => void events.push(facts) },
    metrics,
    clock,
    random: Math.random,
    log: createLog({ process: 'test', level: 'silent' }),
    spawn: (_name, promise) => void promise.catch(failure.reject),
    onHeld: () => {
      held += 1;
    },
    onPass: () => {},
    ...threads,
  });
  const stop = new AbortController();
  const done = agent.run(stop.signal);
  return {
    agent,
    events,
    metrics: () => metrics.registry.metrics(),
    held: () => held,
    ready: () =>
      Promise.race([eventually('the agent is ready', () => agent.missing().length === 0), done, failure.promise]),
    stop: async () => {
      stop.abort();
      await Promise.race([done, failure.promise]);
      await client.close();
    },
  };
};
