/** The network of a node in a large cluster; the golden files show a small one. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nodeInput, podOn } from '../testing/nodes.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../testing/objects.ts';
import { problemsOf } from '../testing/small-cluster.ts';
import { viewOf } from '../testing/world.ts';
import { createNodePlanner } from './desired-for.ts';
import { GATEWAY_NUMBERS, JUMP_FROM, PRIORITIES } from './numbers.ts';

/** Some gateway nodes with one policy each, and what the only worker should hold, which has a pod under every policy. */
const large = (gateways: number) => {
  const count = Array.from({ length: gateways }, (_, index) => index);
  const world = worldOf(
    [
      nodeObject('worker', ['10.0.0.1', 'fd10::1'], {}),
      ...count.map((n) => nodeObject(`gw-${n}`, [`10.0.${1 + (n >> 8)}.${n & 255}`, `fd10::1:${n.toString(16)}`])),
    ],
    [gatewayObject('g', { ipv4: ['10.6.0.0/22'] })],
    count.map((n) => policyObject(`red/p${n}`, { gateway: 'g', allocator: 'rr', at: n })),
  );
  step(world);
  const view = viewOf(world);
  const pods = count.map((n) => podOn('worker', `red/pod-${n}`, [`10.244.${n >> 8}.${n & 255}`], { app: `p${n}` }));
  return { view, desired: createNodePlanner()(nodeInput(view, 'worker', pods)) };
};

describe('a worker with many gateway nodes', () => {
  it('jumps over its rules with packets that are not ours, and only when there are many', () => {
    const few = large(JUMP_FROM - 1).desired.network.rules;
    assert.deepEqual([...new Set(few.map(({ priority }) => priority))], [PRIORITIES.lookup]);
    const many = large(JUMP_FROM).desired.network.rules.filter(({ family }) => family === 4);
    const [first, ...rest] = many;
    assert.deepEqual(first, {
      family: 4,
      priority: PRIORITIES.jump,
      mark: 0,
      mask: 0xff000000,
      action: { kind: 'goto', priority: PRIORITIES.land },
    });
    const last = rest.at(-1);
    assert.equal(last?.priority, PRIORITIES.land);
    assert.ok(last?.action.kind === 'lookup', 'a jump must land on a rule');
    assert.equal(many.length, JUMP_FROM + 2);
  });

  it('has no way to those beyond the numbers there are: their policies drop, and say so', () => {
    const { view, desired } = large(GATEWAY_NUMBERS + 5);
    const { elements } = desired.table;
    assert.equal(new Set(view.policies.map(({ recorded }) => recorded.node)).size, GATEWAY_NUMBERS + 5);
    assert.equal(desired.gatewayNumbers.size, GATEWAY_NUMBERS);
    assert.equal(elements.slot_fwd.size, GATEWAY_NUMBERS);
    const lost = view.policies.filter(({ recorded }) => !desired.gatewayNumbers.has(recorded.node ?? ''));
    assert.deepEqual(problemsOf(desired), lost.map(({ key }) => `${key}: GatewayUnreachable`).toSorted());
    assert.match(desired.problems[0]?.finding.sentence ?? '', /it has ways to 255 others, and no number is left/);
    assert.equal([...elements.dflt4.values()].filter((verdict) => verdict === '0x26000000').length, lost.length);
  });
});
