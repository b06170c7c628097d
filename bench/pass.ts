/**
 * What the controller computes for one new policy beside 1,000 and 5,000 others, in milliseconds of processor time (others
 * share the machine): the plan, who does not show it, and the new status. The cluster is that of controller.ts, without an API server; each policy has its
 * status in the cache when the next one comes. Limits instead of a baseline.
 *
 *   node bench/pass.ts [policies ...]
 */
import { Config } from '../src/api/config.ts';
import { PolicyStatus } from '../src/api/policy.ts';
import type { ControlLoopDeps } from '../src/controller/loop/control-loop.ts';
import { Decider } from '../src/controller/plan/decision.ts';
import { gatewayLoop, type PolicyKnowledge, policyLoop, tunnelLoop } from '../src/controller/plan/loops.ts';
import { policyChanges } from '../src/controller/plan/policy-changes.ts';
import { MemoryCaches } from '../src/controller/plan/testing/memory-caches.ts';
import { gatewayObject, nodeObject, policyObject } from '../src/core/testing/objects.ts';
import { systemClock } from '../src/runtime/process/clock.ts';

const ROUNDS = 200;
const [NODES, GATEWAY_NODES, GATEWAYS, APPS] = [50, 10, 10, 1_000];
/** Of what stands between a new policy and its status, on average. */
const LIMIT_MS = 15;
const config = Config.parse({ feature: { enableIPv6: false } });
const facts = {
  matchedPods: 10,
  progress: { revision: '1', nodes: [], unreadyGatewayNode: undefined, conflicts: [], isHeld: true },
};

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 5_000];
const whole = 'from a policy to its status';
let isMet = true;
for (const size of sizes) measure(size);
process.exitCode = isMet ? 0 : 1;

function measure(size: number): void {
  const cluster = clusterOf(size);
  const totalByWhat = new Map<string, number>();
  const timed = <T>(what: string, work: () => T): T => {
    const before = process.threadCpuUsage();
    const result = work();
    // One call may be shorter than what the kernel counts in; many of them add up.
    const { user, system } = process.threadCpuUsage(before);
    totalByWhat.set(what, (totalByWhat.get(what) ?? 0) + (user + system) / 1000);
    return result;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const [name, index] = [`new-${round}`, size + round];
    cluster.put(name, index);
    timed(whole, () => {
      const decision = timed('  plan', () => cluster.decider.decide(config));
      timed('  who does not show it', () =>
        [cluster.policies, cluster.tunnels].map((loop) => loop.keysBehind(decision)),
      );
      timed('  status', () => cluster.write(name, index));
    });
    const { decision } = cluster;
    if (decision !== undefined) timed('later: views of gateways', () => cluster.gateways.keysBehind(decision));
  }
  console.log(`\n${size} policies, ${GATEWAYS} gateways, average of ${ROUNDS} rounds`);
  for (const [what, totalMs] of totalByWhat) {
    const ms = totalMs / ROUNDS;
    const isJudged = what === whole;
    if (isJudged) isMet &&= ms <= LIMIT_MS;
    const limit = isJudged ? `   limit ${LIMIT_MS}${ms <= LIMIT_MS ? '' : '   NOT MET'}` : '';
    console.log(`  ${what.padEnd(30)}${ms.toFixed(2).padStart(8)} ms${limit}`);
  }
}

/** The caches of a controller that has served some policies. */
function clusterOf(size: number) {
  const caches = new MemoryCaches();
  for (let index = 0; index < GATEWAYS; index += 1) {
    const name = `gateway-${index}`;
    caches.putGateway(name, gatewayObject(name, { ipv4: [`192.168.${index * 4}.0/22`] }));
  }
  for (let index = 0; index < NODES; index += 1) {
    const name = `node-${index}`;
    const labels = index < GATEWAY_NODES ? { egress: 'true' } : {};
    caches.putNode(name, nodeObject(name, [`172.31.0.${index + 1}`], labels));
    caches.putTunnel(name, { tunnel: { parent: { name: 'eth0' } } });
  }
  let revision = 0;
  const put = (name: string, index: number, status?: PolicyStatus): void => {
    const object = policyObject(`bench/${name}`, {
      at: index,
      gateway: `gateway-${index % GATEWAYS}`,
      allocator: 'rr',
      appliedTo: { podSelector: { matchLabels: { app: `app-${index % APPS}` } } },
      destSubnet: ['203.0.113.0/24'],
    });
    revision += 1;
    const metadata = { ...object.metadata, resourceVersion: String(revision) };
    caches.putPolicy(`bench/${name}`, { ...object, metadata }, status);
  };
  const decider = new Decider(caches, { stateOf: () => 'fresh', silent: new Set() });
  // The loops are asked who does not show a decision, for which they need no more than this.
  const deps = { caches, clock: systemClock } as unknown as ControlLoopDeps;
  const knowledge: PolicyKnowledge = {
    members: { count: () => facts.matchedPods },
    book: { of: () => facts.progress },
  };
  const cluster = {
    decision: undefined as ReturnType<Decider['decide']> | undefined,
    decider: {
      decide: (...args: Parameters<Decider['decide']>) => {
        cluster.decision = decider.decide(...args);
        return cluster.decision;
      },
    },
    policies: policyLoop('EgressPolicy', knowledge, deps),
    tunnels: tunnelLoop(deps),
    gateways: gatewayLoop(deps),
    put,
    /** Writes the status of a policy as the API server would show it. */
    write(name: string, index: number): void {
      const decided = cluster.decision?.policyByKey.get(`bench/${name}`);
      const kept = caches.policies.store.get(`bench/${name}`);
      if (decided === undefined || kept === undefined) throw new TypeError(`nothing was decided about ${name}`);
      const [change] = policyChanges(decided, kept, facts, new Date());
      if (change?.kind === 'status') put(name, index, PolicyStatus.parse(JSON.parse(JSON.stringify(change.status))));
    },
  };
  for (let index = 0; index < size; index += 1) put(`policy-${index}`, index);
  const first = cluster.decider.decide(config);
  for (let index = 0; index < size; index += 1) cluster.write(`policy-${index}`, index);
  for (const loop of [cluster.policies, cluster.tunnels, cluster.gateways]) loop.keysBehind(first);
  return cluster;
}
