/**
 * The kernels do what explain() says. For random clusters, policies, pods and destinations, a packet that is walked
 * through the NodeDesired of all nodes comes out as explain() tells it from the view and the plan.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { explainPod } from '../explain/explain.ts';
import { familyOf } from '../ip/index.ts';
import { plan } from '../plan/plan.ts';
import type { PacketOutcome } from '../policies/outcome.ts';
import { ip } from '../testing/address.ts';
import { type Cluster, clusterFrom, destinations, knownPods, NUMBERS_PER_CLUSTER } from '../testing/clusters.ts';
import { desireds } from '../testing/nodes.ts';
import { type Sent, send } from '../testing/packets.ts';
import { cutsAfter } from './existing.ts';

const numbers = fc.array(fc.nat(), { minLength: NUMBERS_PER_CLUSTER, maxLength: NUMBERS_PER_CLUSTER });
const targets = destinations.map(ip);

/** The outcome in the words of the walk, where a packet that leaves with the address of its own node is untouched. */
const asSent = (outcome: PacketOutcome): Sent => {
  switch (outcome.kind) {
    case 'gateway':
      return { kind: 'left', node: outcome.node, source: outcome.eip, slot: outcome.slot };
    case 'drop':
      return { kind: 'dropped', where: '' };
    case 'nodeIp':
    case 'leftAlone':
      return { kind: 'untouched' };
    default:
      return outcome satisfies never;
  }
};
const withoutPlace = (sent: Sent): Sent => (sent.kind === 'dropped' ? { ...sent, where: '' } : sent);

/** Sends a packet from every source to every destination; `tell` gets each outcome. */
const check = (cluster: Cluster, tell: (outcome: PacketOutcome) => void): void => {
  const { view, sources } = cluster;
  const planned = plan(view);
  const kernels = desireds(view, knownPods(cluster));
  for (const { pod } of sources) {
    const own = view.nodes.find(({ name }) => name === pod.node)?.addresses ?? [];
    for (const from of [...pod.ipv4, ...pod.ipv6]) {
      for (const to of targets.filter((one) => familyOf(one) === familyOf(from))) {
        const { outcome, decisions } = explainPod(view, planned, pod, to);
        const sent = send(kernels, { node: pod.node ?? '', from, to, isLocal: own.includes(to) });
        const why = decisions.map(({ sentence }) => sentence).join(' ');
        assert.ok(outcome !== undefined, why);
        assert.deepEqual(withoutPlace(sent), asSent(outcome), `${from} on ${pod.node} to ${to}: ${why}`);
        tell(outcome);
        // A connection that is there already goes exactly when a new one would not be left alone.
        if (own.includes(to)) continue;
        const rules = kernels.get(pod.node ?? '')?.existing;
        const ruling = rules && cutsAfter({ rules: undefined, known: undefined }, rules)?.(from);
        assert.equal(ruling?.(to, 0) ?? false, sent.kind !== 'untouched', `an old one of ${from} to ${to}: ${why}`);
      }
    }
  }
};

describe('the kernels of all nodes', () => {
  it('send every packet as explain() says', () => {
    const told = new Set<string>();
    const tell = (outcome: PacketOutcome): unknown =>
      told.add('because' in outcome ? `${outcome.kind} ${outcome.because}` : outcome.kind);
    fc.assert(
      fc.property(numbers, (drawn) => check(clusterFrom(drawn), tell)),
      { numRuns: 200 },
    );
    // A property that never met one of the outcomes would prove nothing about it.
    const reasons = ['unbound', 'unreachable', 'noAddress'].flatMap((why) => [`drop ${why}`, `nodeIp ${why}`]);
    assert.deepEqual([...told].toSorted(), ['gateway', 'leftAlone', 'nodeIp notReady', ...reasons].toSorted());
  });
});
