/**
 * Starved: the agents of some or all nodes get a processor now and then only, for seconds. Nothing moves for that, but once perhaps while
 * it is new; and what follows meanwhile, or a moment later when everybody still grants long silences, is as safe as ever: no two kernels
 * answer for an EIP at any moment, and nobody is excused. A loss of power is noticed, later than on a quiet machine.
 */
import type { Chance } from './chance.ts';
import { isolate, sizes } from './histories.ts';
import type { Node } from './network.ts';
import { type ScheduleOptions, type Stage, stageOf } from './stage.ts';

/**
 * An EIP that lost its owner in this state has another one after this: the widest silence, a usual one, and six waits for a processor: a loss is
 * noticed late, each question and each answer is sent and read late, and a rival may have to give way first.
 */
const lossLimitMs = (longestMs: number): number => 1_100 + 6 * longestMs;
/** All that was excused on account of a late timer is over then. */
const calmMs = 250;

export const starved = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: 0, doubling: 0.01, delayMs: [0.2, chance.pick([1, 3])] as const, stragglers: 0 };
  const jitterMs = chance.pick([400, 30_000]);
  const size = { ...sizes(chance), gateways: chance.pick([2, 3]), witnesses: chance.pick([1, 2]) };
  const stage = stageOf(options, { ...size, links, graceMs: 10_000, skew: 0.02, jitterMs }, chance);
  const { network, run, settle } = stage;
  settle(400);
  const startedMs = network.timeMs + 60;
  run(startedMs);
  const end = chance.pick(['power', 'power', 'cut', 'cut', 'calm'] as const);
  const shortMs = startedMs + chance.between(800, 2_000);
  const longestMs = chance.pick([60, 120, 250]);
  const limitMs = lossLimitMs(longestMs);
  const hungryMs = end === 'power' ? shortMs + 2 * limitMs : shortMs;
  const share = chance.pick([0.5, 1, 1]);
  for (const node of network.nodes) if (chance.isLucky(share)) network.starve(node, hungryMs, longestMs);
  const before = movesIn(stage);
  const watch = new Watch(stage);
  network.runUntil(shortMs, () => watch.look());
  const moves = movesIn(stage).map((count, index) => count - (before[index] ?? 0));
  const faults = moves.flatMap((count, index) =>
    count > 1 ? [`${stage.eips[index]} moved ${count} times while processors were short`] : [],
  );
  // An owner may let go and take its EIP again while it is new that processors are short.
  for (const eip of stage.eips) {
    const takeOvers = stage.judge.changesOf(eip).length - 1;
    if (takeOvers > 2) faults.push(`${eip} was taken over ${takeOvers} times while processors were short`);
  }
  // One that has let go at the beginning may be asking at this moment.
  settle(network.timeMs + limitMs);
  const [first] = stage.eips;
  const [lost] = first === undefined ? [] : stage.judge.ownersOf(first);
  if (lost === undefined) return [...watch.faults, ...faults, 'nobody owns while processors are short'];
  faults.push(...endings[end](stage, lost, watch, limitMs));
  return [...watch.faults, ...faults].map((fault) => `${fault} (${end})`);
};

type Ending = (stage: Stage, lost: Node, watch: Watch, limitMs: number) => readonly string[];

/** The owner loses its power while processors are short. */
const power: Ending = ({ network, judge, eips }, lost, watch, limitMs) => {
  const offAtMs = network.timeMs;
  const owned = eips.map((eip) => judge.ownersOf(eip).includes(lost));
  network.powerOff(lost);
  network.runUntil(offAtMs + limitMs, () => watch.look());
  return eips.flatMap((eip, index) => {
    const isTaken = judge.changesOf(eip).some(({ atMs, node }) => atMs > offAtMs && node !== lost.name);
    return isTaken || !owned[index] ? [] : [`${eip} has no owner ${limitMs} ms after a loss of power`];
  });
};

/** Processors are there again, and a moment later the owner is cut off: voters have promised it long silences. */
const cut: Ending = (stage, lost, watch, limitMs) => {
  const { network, judge, eips, chance } = stage;
  network.runUntil(network.timeMs + calmMs + chance.between(0, 500), () => watch.look());
  const isOneWay = chance.isLucky(0.4);
  for (const other of network.nodes) {
    network.cut(lost, other);
    if (!isOneWay) network.cut(other, lost);
  }
  const cutAtMs = network.timeMs;
  // The next run of a voter does not know what this one has promised.
  const voter = chance.pick(network.nodes);
  if (voter !== lost && chance.isLucky(0.5)) {
    network.crash(voter);
    network.at(cutAtMs + chance.between(5, 100), () => network.start(voter));
  }
  network.runUntil(cutAtMs + limitMs, () => watch.look());
  return eips.flatMap((eip) => {
    const owners = judge.ownersOf(eip).filter((node) => node !== lost);
    return owners.length === 1 ? [] : [`${eip} has no owner ${limitMs} ms after its owner was cut off`];
  });
};

/** It is forgotten that processors were short: a loss is noticed as quickly as before. */
const calm: Ending = (stage, lost, watch) => {
  const { network, judge, timing, eips } = stage;
  if (timing.jitterMs > 1_000) return [];
  network.runUntil(network.timeMs + 2 * timing.jitterMs + timing.widestMs + calmMs, () => watch.look());
  const offAtMs = network.timeMs;
  isolate(stage, lost);
  network.runUntil(offAtMs + timing.silenceMs + 2 * timing.heartbeatMs, () => watch.look());
  return eips.flatMap((eip) =>
    judge.ownersOf(eip).length === 1 ? [] : [`${eip} has no owner ${network.timeMs - offAtMs} ms after a loss`],
  );
};

const endings = { power, cut, calm } as const;

/** How often each EIP went to another node. */
const movesIn = ({ eips, judge }: Stage): readonly number[] =>
  eips.map((eip) => {
    const nodes = judge.changesOf(eip).map(({ node }) => node);
    return nodes.filter((node, index) => index > 0 && node !== nodes[index - 1]).length;
  });

/** Sees two kernels that answer for an EIP, whatever their agents do. */
class Watch {
  readonly #stage: Stage;
  readonly faults: string[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  look(): void {
    if (this.faults.length > 0) return;
    const { network, judge, eips } = this.#stage;
    for (const eip of eips) {
      const owners = judge.ownersOf(eip).map(({ name }) => name);
      if (owners.length > 1) this.faults.push(`${eip} is owned by ${owners.join(' and ')} at ${network.timeMs} ms`);
    }
  }
}
