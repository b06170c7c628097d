/** Stage: a cluster in a network, about to start, with its judge. What happens to it is in histories.ts and storm.ts. */
import type { Ip } from '../../ip/index.ts';
import { ip } from '../../testing/address.ts';
import { isNodeGroupKey, nodeGroupKey } from '../node-group.ts';
import { Ownership, type OwnershipSettings } from '../ownership.ts';
import type { Effect, OwnershipPlan } from '../port.ts';
import { type Timing, timingOf } from '../timing.ts';
import type { Chance } from './chance.ts';
import { Judge } from './judge.ts';
import { type Links, Network, type Node } from './network.ts';

/** How a schedule is run. */
export interface ScheduleOptions {
  readonly seed: number;
  readonly Ownership?: new (settings: OwnershipSettings) => Ownership;
  readonly onEffect?: (timeMs: number, node: Node, effect: Effect) => void;
}

/** A cluster that is about to begin. */
export interface Stage {
  readonly chance: Chance;
  readonly network: Network;
  readonly judge: Judge;
  readonly timing: Timing;
  readonly eips: readonly Ip[];
  readonly plan: OwnershipPlan;
  run(untilMs: number): void;
  /** Runs until each EIP has one owner, but no longer than that. */
  settle(limitMs: number): void;
}

export interface StageSettings {
  readonly gateways: number;
  readonly witnesses: number;
  readonly eips: number;
  readonly links: Links;
  readonly graceMs: number;
  readonly skew: number;
  /** How long it is remembered that something was late, where it is another time than usual. */
  readonly jitterMs?: number;
}

export const quietLinks: Links = { loss: 0, doubling: 0, delayMs: [0.2, 1], stragglers: 0 };

/** What schedules use: an EIP and node groups, between which the protocol knows no difference. */
export const allEips: readonly Ip[] = [
  ip('10.6.1.1'),
  nodeGroupKey({ gateway: 'main', node: 'n0' }),
  nodeGroupKey({ gateway: 'main', node: 'n1' }),
  nodeGroupKey({ gateway: 'main', node: 'n2' }),
];

/** Puts up a cluster whose agents start at about the same time. */
export const stageOf = (options: ScheduleOptions, settings: StageSettings, chance: Chance): Stage => {
  const usual = timingOf({ heartbeatMs: 25, heartbeatCount: 4, graceMs: settings.graceMs });
  const timing = { ...usual, jitterMs: settings.jitterMs ?? usual.jitterMs };
  const names = Array.from({ length: settings.gateways + settings.witnesses }, (_, index) => `n${index}`);
  const gateways = names.slice(0, settings.gateways);
  const eips = allEips.slice(0, settings.eips);
  const plan: OwnershipPlan = {
    electorate: { generation: 1, voters: names, hasApi: names.length % 2 === 0 },
    gateways,
    nodes: [],
    eips: eips.map((eip, index) => ({ eip, addresses: pairOf(eip), epoch: 0, candidates: rotated(gateways, index) })),
  };
  const judge = new Judge(timing, eips);
  const { onEffect } = options;
  const network: Network = new Network({
    chance,
    names,
    timing,
    links: settings.links,
    skew: settings.skew,
    Ownership: options.Ownership ?? Ownership,
    onHold: (node) => judge.held(node),
    ...(onEffect && { onEffect: (node, effect) => onEffect(network.timeMs, node, effect) }),
  });
  judge.watch(network);
  for (const node of network.nodes) {
    node.plan = plan;
    network.at(chance.between(0, 20), () => network.start(node));
  }
  const check = (): void => judge.check();
  const run = (untilMs: number): void => network.runUntil(untilMs, check);
  const settle = (limitMs: number): void => {
    while (network.timeMs < limitMs && !eips.every((eip) => judge.ownersOf(eip).length === 1)) {
      run(Math.min(limitMs, network.timeMs + STEP_MS));
    }
  };
  return { chance, network, judge, timing, eips, plan, run, settle };
};

/** Each is a pair, so that the outside can be lost for one half of it; a node group needs both families as well. */
const pairOf = (eip: Ip): readonly Ip[] => (isNodeGroupKey(eip) ? [ip('0.0.0.0'), ip('::')] : [eip, ip('fd06::1')]);

/** How often it is looked whether all is settled. */
const STEP_MS = 10;

const rotated = <T>(list: readonly T[], by: number): readonly T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
];
