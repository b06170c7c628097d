/**
 * Uplinks: nodes lose the outside for networks of EIPs and get it back, in any order, while all hear each other. An EIP, which is a pair
 * here, goes to a node that reaches more of it and to no other, and soon after the last change it rests where the most of it is in reach.
 */

import { cidr } from '../../testing/address.ts';
import { NetworkReach, type Unreached } from '../reach.ts';
import type { Chance } from './chance.ts';
import { sizes } from './histories.ts';
import type { Node } from './network.ts';
import { quietLinks, type ScheduleOptions, stageOf } from './stage.ts';

/** The last is about no EIP of a history. */
const networks = ['0.0.0.0/0', '::/0', '10.6.0.0/16', 'fd06::/64', '10.7.0.0/16'].map(cidr);
const changingMs = 600;
/** After the last change: a silence for the owner to be sure, another for the one that gets it, messages. */
const restingMs = 400;

/** Any of the networks; that a router has not answered yet is said as well. */
export const anyUnreached = (chance: Chance): readonly Unreached[] =>
  networks.filter(() => chance.isLucky(0.4)).map((network) => ({ network, isLost: chance.isLucky(0.8) }));

export const uplinks = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const stage = stageOf(options, { ...sizes(chance), links: quietLinks, graceMs: 1_000, skew: 0.02 }, chance);
  const { network, judge, plan, settle, run } = stage;
  settle(400);
  const startedMs = network.timeMs + 60;
  run(startedMs);
  const gateways = network.nodes.filter(({ name }) => plan.gateways.includes(name));
  const reachOf = new Map<Node, NetworkReach>(gateways.map((node) => [node, new NetworkReach([])]));
  const ownersBefore = new Map(plan.eips.map(({ eip }) => [eip, judge.changesOf(eip).length]));
  // When all lose the same, they do not see it at the same moment, nor when it is back.
  const isCommon = chance.isLucky(0.3);
  const apartMs = 50;
  let lastMs = startedMs;
  for (let left = chance.pick([1, 2, 3, 5, 8]); left > 0; left -= 1) {
    const atMs = startedMs + chance.between(0, changingMs);
    const unreached = chance.isLucky(0.3) ? [] : anyUnreached(chance).map((one) => ({ ...one, isLost: true }));
    for (const node of isCommon ? gateways : [chance.pick(gateways)]) {
      const seenAtMs = isCommon ? startedMs + 150 * left + chance.between(0, apartMs) : atMs;
      lastMs = Math.max(lastMs, seenAtMs);
      network.at(seenAtMs, () => {
        reachOf.set(node, new NetworkReach(unreached));
        network.tell(node, { kind: 'uplink', unreached });
      });
    }
  }
  run(lastMs + restingMs);
  const faults: string[] = [];
  for (const planned of plan.eips) {
    const { eip } = planned;
    const lossAt = (node: Node | undefined): number => (node && reachOf.get(node)?.lossOf(planned)) ?? 0;
    const owners = judge.ownersOf(eip);
    const least = Math.min(...gateways.map(lossAt));
    const names = owners.map(({ name }) => name).join(' and ') || 'nobody';
    if (owners.length !== 1 || lossAt(owners[0]) > least)
      faults.push(`${eip} is owned by ${names} in the end, which has lost ${lossAt(owners[0])} of it, others ${least}`);
    const moves = judge.changesOf(eip).length - (ownersBefore.get(eip) ?? 0);
    if (isCommon && moves > 0) faults.push(`${eip} moves ${moves} times though all nodes lose the same`);
  }
  const moved = plan.eips.map(({ eip }) => judge.changesOf(eip).length).join();
  run(network.timeMs + restingMs);
  if (plan.eips.map(({ eip }) => judge.changesOf(eip).length).join() !== moved) faults.push('EIPs go on moving');
  return [...faults, ...judge.faults];
};
