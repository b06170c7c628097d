/**
 * Cost of planning one node, in milliseconds of processor time (others share the machine): what its agent computes before
 * it touches the kernel.
 * - from nothing: 1,000 policies with 10 pods each on this node, as at the start of an agent;
 * - one pod more, one policy changed, one heartbeat of another node: beside 5,000 policies and 100 pods on this node;
 * - one policy changed, on a node that holds the EIPs of all 5,000.
 * Also the memory that the planner and the last NodeDesired hold. Limits instead of a baseline.
 * Run: npx node --expose-gc bench/node.ts
 */

import type { ClusterView, PolicyView } from '../src/core/cluster/view.ts';
import { createNodePlanner } from '../src/core/node/desired-for.ts';
import type { NodeInput } from '../src/core/node/input.ts';
import { nodeInput, podOn } from '../src/core/testing/nodes.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../src/core/testing/objects.ts';
import { viewOf } from '../src/core/testing/world.ts';

const ROUNDS = 15;
const NODES = 50;
const GATEWAYS = 20;

/** The cluster with some policies, whose EIPs are on the first `gatewayNodes` nodes. */
const viewOfCluster = (policies: number, gatewayNodes: number): ClusterView => {
  const nodes = Array.from({ length: NODES }, (_, index) =>
    nodeObject(
      `node-${index}`,
      [`10.0.0.${index + 1}`, `fd10::${index + 1}`],
      index < gatewayNodes ? { egress: 'true' } : {},
    ),
  );
  const gateways = Array.from({ length: GATEWAYS }, (_, index) =>
    gatewayObject(`gateway-${index}`, {
      ipv4: [`10.${100 + index}.0.0/20`],
      ipv6: [`fd06:${index}::1-fd06:${index}::ffe`],
    }),
  );
  const objects = Array.from({ length: policies }, (_, index) =>
    policyObject(`team-${index % 97}/policy-${index}`, {
      at: index,
      gateway: `gateway-${index % GATEWAYS}`,
      allocator: 'rr',
      ...(index % 2 === 0 ? { destSubnet: [`198.51.${index % 250}.0/24`, '203.0.113.0/24', '2001:db8::/32'] } : {}),
    }),
  );
  const world = worldOf(nodes, gateways, objects);
  world.clusterInfo = {
    metadata: { name: 'default' },
    status: { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'], ipv6: ['fd44::/32'] } } },
  };
  step(world);
  return viewOf(world);
};

/** The input of a worker with pods that are spread over the policies. */
const workerInput = (policies: number, pods: number): NodeInput =>
  nodeInput(
    viewOfCluster(policies, 25),
    'node-40',
    Array.from({ length: pods }, (_, index) => podOf(index, index % policies)),
  );

const podOf = (index: number, policy: number) =>
  podOn(
    'node-40',
    `team-${policy % 97}/pod-${index}`,
    [`10.244.${index >> 8}.${index & 255}`, `fd44::${index.toString(16)}`],
    { app: `policy-${policy}`, 'pod-template-hash': '7d9f8c6b5', tier: 'web' },
  );

interface Figure {
  readonly median: number;
  readonly best: number;
}

/** Times a run; a short one is `repeated`, because the clock of the processor is coarse. */
const measure = (run: (round: number) => unknown, repeated = 1): Figure => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = process.threadCpuUsage();
    for (let time = 0; time < repeated; time += 1) run(round * repeated + time);
    const { user, system } = process.threadCpuUsage(start);
    times.push((user + system) / 1000 / repeated);
  }
  return { median: times.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN, best: Math.min(...times) };
};

const show = (what: string, { median, best }: Figure, limit: number): void => {
  console.log(what.padEnd(50), median.toFixed(2).padStart(10), best.toFixed(2).padStart(10), String(limit).padStart(8));
  if (median > limit) process.exitCode = 1;
};

console.log(`${NODES} nodes, ${GATEWAYS} gateways, ${ROUNDS} rounds, milliseconds of processor time`);
console.log('work'.padEnd(50), 'median'.padStart(10), 'best'.padStart(10), 'limit'.padStart(8));

const start = workerInput(1_000, 10_000);
show(
  'from nothing: 1,000 policies x 10 pods',
  measure(() => createNodePlanner()(start)),
  150,
);

const large = workerInput(5_000, 100);
const plan = createNodePlanner();
let last = plan(large);
/** Plans the last input with another part. */
const change = (over: Partial<NodeInput>): void => {
  last = plan({ ...large, ...over, gatewayNumbers: last.gatewayNumbers });
};
show(
  'one pod more: 5,000 policies, 100 pods',
  measure((round) => change({ pods: [...large.pods, podOf(1_000 + round, 7)] }), 20),
  5,
);
show(
  'one policy changed: 5,000 policies, 100 pods',
  measure((round) => change({ policies: changedPolicy(large, round) })),
  25,
);
show(
  'one heartbeat: 5,000 policies, 100 pods',
  measure(() => change({ tunnels: large.tunnels.with(3, { ...(large.tunnels[3] ?? fail()) }) }), 20),
  5,
);

const gateway = nodeInput(viewOfCluster(5_000, 1), 'node-0', []);
const planGateway = createNodePlanner();
planGateway(gateway);
show(
  'one policy changed: gateway node, 5,000 EIP pairs',
  measure((round) => planGateway({ ...gateway, policies: changedPolicy(gateway, round) })),
  50,
);

function changedPolicy({ policies }: NodeInput, round: number): readonly PolicyView[] {
  return policies.with(7, { ...(policies[7] ?? fail()), createdAtMs: round });
}

function fail(): never {
  throw new Error('the cluster of the benchmark is too small');
}

if (globalThis.gc !== undefined) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  const planner = createNodePlanner();
  const held = planner(large);
  globalThis.gc();
  const bytes = process.memoryUsage().heapUsed - before;
  console.log(
    `held by planner and result: ${(bytes / 1e6).toFixed(1)} MB (${held.table.elements.slot_fwd.size} slots)`,
  );
}
