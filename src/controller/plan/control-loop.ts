/** The part that plans and makes the objects show the plan: tunnels (a), gateways and policies (b). */
import type { PolicyView } from '../../core/cluster/view.ts';
import { Controller } from '../../runtime/control/controller.ts';
import { type Watch, watch } from '../../runtime/control/watch.ts';
import type { AnyStatus } from '../../runtime/kube/owned-status.ts';
import { wait } from '../../runtime/process/clock.ts';
import { untilSynced } from '../loop/caches.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import type { Members } from '../membership/members.ts';
import { Decider, type IndexedPlan } from './decision.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { KindLoop } from './loop.ts';
import { gatewayLoop, isNotHeld, policyLoop, tunnelLoop } from './loops.ts';
import { Planner } from './planner.ts';
import { RolloutTracker } from './rollout-tracker.ts';

/** How objects of one kind are written: how many at once, and how long nothing is written after one, as part of its time. */
interface Tempo {
  readonly workers: number;
  readonly rest: number;
}
const usual: Tempo = { workers: 8, rest: 0 };
/** Eight views of gateways at once, with 500 EIPs each, kept the API server from everything else for a second. */
const gentle: Tempo = { workers: 1, rest: 1 };
/**
 * The views of gateways are looked at when policies have stopped coming for a moment, and every two seconds while they do
 * not: somebody waits for each policy, and a view with hundreds of EIPs costs the API server as much as many of them.
 */
const [gatewayDelayMs, gatewayLimitMs] = [100, 2_000];

/** The plan part, which also shows its last decision to metrics. */
export interface PlanLoop extends ControlLoop {
  readonly decision: IndexedPlan | undefined;
  /** A watch that names keys after a decision, for parts that follow the plan; see Planner. */
  readonly watch: Planner['watch'];
}

/** Makes the part. `heartbeats` is that of the process: a new leader knows how long agents have been silent. */
export const planLoop = (deps: ControlLoopDeps, members: Members, heartbeats: Heartbeats): PlanLoop => {
  const { caches, clock } = deps;
  const planner = new Planner(deps, heartbeats);
  const book = new RolloutTracker({ caches, members, heartbeats, clock });
  const policyController = (kind: PolicyView['kind']): Controller => {
    const loop = policyLoop(kind, { members, book }, deps);
    const toldBy = (name: string, source: Pick<Members | RolloutTracker, 'subscribe'>): Watch => ({
      name,
      synced: caches.synced,
      presentKeys: () => [],
      subscribe: (tell) => source.subscribe((keys) => tell(keys.filter((key) => loop.cache.store.has(key)))),
    });
    return controllerOf(loop, deps, planner, [
      planner.watch('plan', (decision) => loop.keysBehind(decision)),
      toldBy('pods', members),
      toldBy('reports', book),
    ]);
  };
  const tunnels = tunnelLoop(deps);
  const gateways = gatewayLoop(deps);
  const controllers = [
    controllerOf(tunnels, deps, planner, [planner.watch('plan', (decision) => tunnels.keysBehind(decision))]),
    controllerOf(
      gateways,
      deps,
      planner,
      [
        // At once: a policy that has something from a gateway that is not held could lose it.
        planner.watch('new', () => keysNotHeld(caches.gateways)),
        planner.watch('plan', (decision) => gateways.keysBehind(decision), gatewayDelayMs, gatewayLimitMs),
      ],
      gentle,
    ),
    policyController('EgressPolicy'),
    policyController('EgressClusterPolicy'),
  ];
  for (const controller of controllers) deps.metrics.observeQueue(controller);
  return {
    name: 'plan',
    get decision() {
      return planner.decision;
    },
    watch: (...which) => planner.watch(...which),
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

const keysNotHeld = ({ store }: ControlLoopDeps['caches']['gateways']): string[] =>
  [...store.entries()].filter(([, { identity }]) => isNotHeld(identity)).map(([key]) => key);

const controllerOf = <View, Status extends AnyStatus>(
  loop: KindLoop<View, Status>,
  { clock, random, log, metrics }: ControlLoopDeps,
  planner: Planner,
  watches: readonly Watch[],
  { workers, rest }: Tempo = usual,
): Controller =>
  new Controller(
    {
      name: loop.name,
      workers,
      // What was decided or learnt, and what somebody else changed in an object that was already dealt with.
      watches: [...watches, watch(loop.name, loop.cache)],
      reconcile: async (key, signal) => {
        const { decision } = planner;
        if (decision === undefined) return { kind: 'done' };
        const startMs = clock.monotonicMs();
        const result = await loop.reconcile(key, decision, signal);
        if (rest > 0) await wait(clock, rest * (clock.monotonicMs() - startMs), signal);
        return result;
      },
    },
    { clock, random, log, hooks: metrics.controller(loop.name) },
  );
