/**
 * Cost of one whole plan in milliseconds, for 50 nodes and 200 gateways: from nothing (no record, every EIP is chosen),
 * from the record (after a start), again by a planner that remembers (nothing changed; one more policy, which is what
 * a controller does), and after one node is lost. Also what reading the objects costs, once per object and change.
 * Run: npx node bench/plan.ts
 */
import { createPlanner, plan } from '../src/core/plan/plan.ts';
import { projectPolicy } from '../src/core/project/index.ts';
import { gatewayObject, nodeObject, policyObject, worldOf } from '../src/core/testing/objects.ts';
import { record, viewOf, type World } from '../src/core/testing/world.ts';

const ROUNDS = 15;
const NODES = 50;
const GATEWAYS = 200;
const SIZES = [1_000, 5_000, 14_000];

const clusterOf = (policies: number): World => {
  const nodes = Array.from({ length: NODES }, (_, index) =>
    nodeObject(`node-${index}`, [`10.0.0.${index + 1}`, `fd10::${index + 1}`], {
      egress: 'true',
      zone: `${index % 5}`,
    }),
  );
  const gateways = Array.from({ length: GATEWAYS }, (_, index) =>
    gatewayObject(`gateway-${index}`, {
      at: index,
      ipv4: [`10.${100 + (index >> 4)}.${(index & 15) * 16}.0/24`],
      ipv6: [`fd06:${index.toString(16)}::1-fd06:${index.toString(16)}::fe`],
      policy: ['average', 'minimum', 'limit'][index % 3] ?? 'average',
      selector: { matchLabels: { egress: 'true', zone: `${index % 5}` } },
    }),
  );
  const allocators = ['rr', 'rr', 'default', 'random', 'limit'];
  const objects = Array.from({ length: policies }, (_, index) =>
    policyObject(`team-${index % 97}/policy-${index}`, {
      at: index,
      gateway: `gateway-${index % GATEWAYS}`,
      allocator: allocators[index % allocators.length] ?? 'rr',
      ...(index % 2 === 0 ? { destSubnet: ['198.51.100.0/24', '2001:db8::/32'] } : {}),
    }),
  );
  return worldOf(nodes, gateways, objects);
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const measure = (run: (round: number) => unknown): { median: number; best: number } => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    run(round);
    times.push(performance.now() - start);
  }
  return { median: median(times), best: Math.min(...times) };
};

const show = (policies: number, what: string, figure: { median: number; best: number }): void =>
  console.log(
    String(policies).padStart(8),
    what.padEnd(28),
    figure.median.toFixed(1).padStart(10),
    figure.best.toFixed(1).padStart(10),
  );

console.log(`${NODES} nodes, ${GATEWAYS} gateways, ${ROUNDS} rounds`);
console.log('policies'.padStart(8), 'work'.padEnd(28), 'median ms'.padStart(10), 'best ms'.padStart(10));
for (const policies of SIZES) {
  const world = clusterOf(policies);
  show(
    policies,
    'read all objects',
    measure(() => viewOf(world)),
  );
  const fresh = viewOf(world);
  show(
    policies,
    'plan from nothing',
    measure(() => plan(fresh)),
  );
  record(world, plan(fresh));
  const recorded = viewOf(world);
  show(
    policies,
    'plan from the record',
    measure(() => plan(recorded)),
  );
  const planner = createPlanner();
  planner(recorded);
  show(
    policies,
    'the same again',
    measure(() => planner(recorded)),
  );
  const added = Array.from({ length: ROUNDS }, (_, index) =>
    projectPolicy(
      policyObject(`team-${index}/new-${index}`, {
        at: policies + index,
        gateway: `gateway-${index}`,
        allocator: 'rr',
      }),
    ),
  );
  let known = recorded.policies;
  show(
    policies,
    'one more policy',
    measure((round) => {
      known = [...known, ...added.slice(round, round + 1)];
      planner({ ...recorded, policies: known });
    }),
  );
  world.silent.add('node-7');
  const lost = viewOf(world);
  show(
    policies,
    'plan after a node is lost',
    measure(() => plan(lost)),
  );
}
