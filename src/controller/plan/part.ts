/** The part that plans and makes the objects show the plan: tunnels (a), gateways and policies (b). */
import { Controller } from '../../runtime/control/controller.ts';
import { watch } from '../../runtime/control/watch.ts';
import { untilSynced } from '../caches.ts';
import type { AnyStatus } from '../owned-status.ts';
import type { Part, PartDeps } from '../part.ts';
import { Decider, type Decision } from './decision.ts';
import { Heartbeats } from './heartbeats.ts';
import type { Loop } from './loop.ts';
import { gatewayLoop, policyLoop, tunnelLoop } from './loops.ts';
import { Planner } from './planner.ts';

/** Objects of one kind that are written at once. */
const workers = 16;

/** The plan part, which also shows its last decision to metrics. */
export interface PlanPart extends Part {
  readonly decision: Decision | undefined;
}

/** Makes the part. Make it before the caches run, on every replica: it listens to heartbeats from then on. */
export const planPart = (deps: PartDeps): PlanPart => {
  const heartbeats = new Heartbeats(deps.caches, deps.clock);
  const planner = new Planner(deps, heartbeats);
  const controllers = [
    controllerOf(tunnelLoop(deps), planner, deps),
    controllerOf(gatewayLoop(deps), planner, deps),
    controllerOf(policyLoop('EgressPolicy', deps), planner, deps),
    controllerOf(policyLoop('EgressClusterPolicy', deps), planner, deps),
  ];
  for (const controller of controllers) deps.metrics.observeQueue(controller);
  return {
    name: 'plan',
    get decision() {
      return planner.decision;
    },
    missing: () =>
      controllers.flatMap((controller) => {
        const lack = controller.missing();
        return lack === undefined ? [] : [`${controller.name}: ${lack}`];
      }),
    run: async (signal) => {
      if (!(await untilSynced(deps.caches, signal))) return;
      const decider = new Decider(deps.caches, heartbeats);
      await Promise.all([planner.run(decider, signal), ...controllers.map((controller) => controller.run(signal))]);
    },
  };
};

const controllerOf = <View, Status extends AnyStatus>(
  loop: Loop<View, Status>,
  planner: Planner,
  { clock, random, log, metrics }: PartDeps,
): Controller =>
  new Controller(
    {
      name: loop.name,
      workers,
      // What the plan changed, and what somebody else changed in an object that the plan has already dealt with.
      watches: [planner.watch('plan', (decision) => loop.keysBehind(decision)), watch(loop.name, loop.cache)],
      reconcile: async (key, signal) => {
        const { decision } = planner;
        return decision === undefined ? { kind: 'done' } : loop.reconcile(key, decision, signal);
      },
    },
    { clock, random, log, hooks: metrics.controller(loop.name) },
  );
