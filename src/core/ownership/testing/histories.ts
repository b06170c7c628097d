/**
 * Histories: what one kind of fault may do and what it may not. Each returns what went wrong, as sentences; none is good.
 * A seed is a whole history: the nodes, their clocks, the links, every fault and every message.
 */
import type { Ip } from '../../ip/index.ts';
import type { OwnershipPlan } from '../port.ts';
import { Chance } from './chance.ts';
import type { Node } from './network.ts';
import { quietLinks, type ScheduleOptions, type Stage, stageOf } from './stage.ts';
import { stalls } from './stalls.ts';
import { starved } from './starved.ts';
import { storm } from './storm.ts';
import { uplinks } from './uplinks.ts';

/** When every EIP has its first owner at the latest, on links without loss. */
const STARTED_MS = 200;

/** Agents are killed, stopped and held up, some or all at once, for less than the grace: nothing may move or be let go. */
const agents = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: chance.pick([0, 0.005]), doubling: 0.01, delayMs: [0.2, 3] as const, stragglers: 0 };
  const stage = stageOf(options, { ...sizes(chance), links, graceMs: 1_000, skew: 0.02 }, chance);
  const { network, run, settle } = stage;
  settle(2 * STARTED_MS);
  // All voters vote for the owner, as they do soon after a majority has.
  const startedMs = network.timeMs + 60;
  run(startedMs);
  const before = ownersIn(stage);
  let lastMs = startedMs;
  const down = network.nodes.filter(() => chance.isLucky(0.5));
  for (const node of down) {
    const fromMs = startedMs + chance.between(0, 60);
    const untilMs = fromMs + chance.between(5, chance.pick([60, 260]));
    lastMs = Math.max(lastMs, untilMs);
    const isKilled = chance.isLucky(0.5);
    network.at(fromMs, () => (isKilled ? network.crash(node) : network.pause(node)));
    network.at(untilMs, () => (isKilled ? network.start(node) : network.resume(node)));
  }
  run(lastMs + 1.5 * stage.timing.silenceMs);
  return [...stage.judge.faults, ...compare(before, ownersIn(stage), 'though only agents were down')];
};

/**
 * Every agent is stopped at about the same time, for as long as kernels hold by themselves, and goes on at about the same time,
 * by fits and starts: nothing may move or be let go.
 */
const together = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: chance.pick([0, 0.005]), doubling: 0.01, delayMs: [0.2, 3] as const, stragglers: 0 };
  const stage = stageOf(options, { ...sizes(chance), links, graceMs: 10_000, skew: 0.02 }, chance);
  const { network, timing, run, settle } = stage;
  settle(2 * STARTED_MS);
  const startedMs = network.timeMs + 60;
  run(startedMs);
  const before = ownersIn(stage);
  const forMs = chance.between(5, chance.pick([100, 500, 0.9 * timing.leaseMs]));
  const apartMs = chance.pick([0, 5, 40, 200]);
  let lastMs = startedMs;
  for (const node of network.nodes) {
    const fromMs = startedMs + chance.between(0, Math.min(apartMs, forMs));
    let untilMs = startedMs + forMs + chance.between(0, apartMs);
    const stop = (from: number, until: number): void => {
      network.at(from, () => network.pause(node));
      network.at(until, () => network.resume(node));
      lastMs = Math.max(lastMs, until);
    };
    stop(fromMs, untilMs);
    for (let left = chance.below(6); left > 0; left -= 1) {
      const againMs = untilMs + chance.between(0.5, 30);
      untilMs = againMs + chance.between(1, 60);
      stop(againMs, untilMs);
    }
  }
  run(lastMs + 1.5 * timing.silenceMs);
  return [...stage.judge.faults, ...compare(before, ownersIn(stage), 'though all agents were stopped together')];
};

/** The owner loses its power: its EIPs have another owner soon, those of others do not move. */
const loss = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: chance.pick([0, 0, 0.01]), doubling: 0, delayMs: [0.2, 2] as const, stragglers: 0 };
  const stage = stageOf(options, { ...sizes(chance), witnesses: 2, links, graceMs: 1_000, skew: 0.01 }, chance);
  const { network, judge, timing, eips, run, settle } = stage;
  settle(2 * STARTED_MS);
  const startedMs = network.timeMs + 60;
  run(startedMs);
  const dead = network.nodes[chance.below(2)];
  if (dead === undefined) return ['there is no node'];
  const offAtMs = startedMs + chance.between(0, 30);
  const before = ownersIn(stage);
  network.at(offAtMs, () => (chance.isLucky(0.5) ? network.powerOff(dead) : isolate(stage, dead)));
  // The silence is full a heartbeat after the last one at the latest; then two messages, lost once perhaps.
  const limitMs = timing.silenceMs + 2 * timing.heartbeatMs + (links.loss > 0 ? timing.silenceMs : 0);
  run(offAtMs + limitMs);
  const faults = [...judge.faults];
  const changed = before.map((owner) => (owner.startsWith(`${dead.name}/`) ? 'another' : owner.split('/')[0]));
  for (const [index, eip] of eips.entries()) {
    const owners = judge.ownersOf(eip).map(({ name }) => name);
    const isRight = changed[index] === 'another' ? owners.length === 1 : owners[0] === changed[index];
    if (!isRight || owners.includes(dead.name))
      faults.push(`${eip} is owned by ${owners.join() || 'nobody'} in the end`);
    if (judge.changesOf(eip).length > 2) faults.push(`${eip} moved more than once`);
  }
  return faults;
};

/** A planned move: at every moment some kernel carries the EIP, and in the end the right one owns it. */
const move = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const stage = stageOf(options, { ...sizes(chance), links: quietLinks, graceMs: 1_000, skew: 0.02 }, chance);
  const { network, judge, eips, run, settle } = stage;
  settle(STARTED_MS);
  const startedMs = network.timeMs;
  const plan: OwnershipPlan = {
    ...stage.plan,
    eips: stage.plan.eips.map(({ eip, candidates }) => ({
      eip,
      epoch: judge.changesOf(eip).at(-1)?.epoch ?? 0,
      candidates: reordered(candidates, chance),
    })),
  };
  for (const node of network.nodes) network.at(startedMs + chance.between(0, 50), () => network.setPlan(node, plan));
  const faults: string[] = [];
  for (let timeMs = startedMs; timeMs < startedMs + 200; timeMs += 2) {
    run(timeMs);
    for (const eip of eips) {
      const isCarried = network.nodes.some(({ kernel }) => ['owned', 'carried'].includes(kernel.get(eip)?.mode ?? ''));
      if (!isCarried && faults.length === 0) faults.push(`${eip} is carried by nobody at ${timeMs} ms`);
      const alone = network.nodes.find((node) => !isExpected(node, eip, network.nodes));
      if (alone !== undefined && faults.length === 0) {
        faults.push(`${alone.name} hands packets of ${eip} to a node that does not expect them at ${timeMs} ms`);
      }
    }
  }
  for (const { eip, candidates } of plan.eips) {
    const owner = judge.ownersOf(eip)[0]?.name;
    if (owner !== candidates[0]) faults.push(`${eip} is owned by ${owner}, and should be by ${candidates[0]}`);
  }
  return [...faults, ...judge.faults];
};

/** Whether an owner that hands packets of an EIP to another node finds that one ready for them. */
const isExpected = ({ name, kernel }: Node, eip: Ip, nodes: readonly Node[]): boolean => {
  const { mode, other } = kernel.get(eip) ?? {};
  if (mode !== 'owned' || other === undefined) return true;
  const there = nodes.find((node) => node.name === other)?.kernel.get(eip);
  return there?.mode === 'carried' && there.other === name;
};

/**
 * EIPs are given up and given again, to other nodes, some lives long: each has one owner again, with a later epoch, and whoever the
 * plan does not send there was told. One may read late that it is given again. Some nodes are slow, and never see that an EIP was gone; that one
 * of these owns it is known to others by its report only, which is not in this play.
 */
const again = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const told = new Map<string, string>();
  const onEffect: ScheduleOptions['onEffect'] = (timeMs, node, effect) => {
    if (effect.kind === 'owner') told.set(`${node.name} ${effect.eip}`, effect.node);
    options.onEffect?.(timeMs, node, effect);
  };
  const stage = stageOf(
    { ...options, onEffect },
    { ...sizes(chance), links: quietLinks, graceMs: 1_000, skew: 0.02 },
    chance,
  );
  const { network, judge, eips, run, settle } = stage;
  const nodes = network.nodes.map(({ name }) => name);
  const faults: string[] = [];
  for (const node of network.nodes) node.plan = { ...stage.plan, nodes };
  settle(STARTED_MS);
  for (let lives = chance.pick([1, 2, 3]); lives > 0; lives -= 1) {
    const goneAtMs = network.timeMs + chance.between(0, 300);
    const backAtMs = goneAtMs + chance.between(60, 400);
    const given = stage.plan.eips.map(({ eip, candidates }) => ({
      eip,
      epoch: 0,
      candidates: reordered(candidates, chance),
    }));
    const slow = new Set(nodes.filter(() => chance.isLucky(0.1)));
    const late = chance.pick(nodes);
    for (const node of network.nodes) {
      const plan = { ...stage.plan, nodes };
      if (!slow.has(node.name)) {
        network.at(goneAtMs + chance.between(0, 50), () => {
          network.setPlan(node, { ...plan, eips: [] });
          // As the agent does.
          for (const eip of eips) told.delete(`${node.name} ${eip}`);
        });
      }
      const readMs = chance.between(0, node.name === late ? 400 : 50);
      network.at(backAtMs + readMs, () => network.setPlan(node, { ...plan, eips: given }));
    }
    run(backAtMs + 800);
    for (const { eip, candidates } of given) {
      const [owner, second] = judge.ownersOf(eip).map(({ name }) => name);
      if (owner === undefined || second !== undefined)
        faults.push(`${eip} is owned by ${owner ?? 'nobody'} and ${second}`);
      if (slow.size === 0 && owner !== candidates[0])
        faults.push(`${eip} is owned by ${owner}, not by ${candidates[0]}`);
      for (const name of slow.has(owner ?? '') ? [] : nodes) {
        const goesTo = told.get(`${name} ${eip}`) ?? candidates[0];
        if (name !== owner && goesTo !== owner)
          faults.push(`${name} sends packets of ${eip} to ${goesTo}, not to ${owner}`);
      }
    }
  }
  return [...faults, ...judge.faults, ...epochsNotGrowing(stage)];
};

/** Links are cut in any way while agents run: never two owners, and epochs only grow. No clock is off by more than it may. */
const partition = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: chance.pick([0, 0.05]), doubling: 0.02, delayMs: [0.2, 8] as const, stragglers: 0.02 };
  const stage = stageOf(options, { ...sizes(chance), links, graceMs: 400, skew: 0.03 }, chance);
  const { network, judge, run, settle } = stage;
  settle(STARTED_MS);
  const startedMs = network.timeMs;
  for (let left = chance.pick([1, 2, 3]); left > 0; left -= 1) {
    network.at(startedMs + chance.between(0, 150), () => {
      if (chance.isLucky(0.3)) network.healLinks();
      const here = network.nodes.filter(() => chance.isLucky(0.5));
      const isOneWay = chance.isLucky(0.4);
      for (const one of here) {
        for (const other of network.nodes.filter((node) => !here.includes(node))) {
          network.cut(one, other);
          if (!isOneWay) network.cut(other, one);
        }
      }
    });
  }
  run(startedMs + 320);
  return [...judge.faults, ...epochsNotGrowing(stage)];
};

/** The EIPs of which an owner had no later epoch than the one before it. */
const epochsNotGrowing = ({ eips, judge }: Stage): readonly string[] =>
  eips.flatMap((eip) => {
    const epochs = judge.changesOf(eip).map(({ epoch }) => epoch);
    const isGrowing = epochs.every((epoch, index) => epoch > (epochs[index - 1] ?? 0));
    return isGrowing ? [] : [`epochs ${epochs.join()} of ${eip}`];
  });

/** The candidates with any of them first. */
const reordered = (candidates: readonly string[], chance: Chance): readonly string[] => {
  const first = chance.pick(candidates);
  return [first, ...candidates.filter((name) => name !== first)];
};

export const sizes = (chance: Chance): { gateways: number; witnesses: number; eips: number } => ({
  gateways: chance.pick([2, 2, 3]),
  witnesses: chance.pick([0, 1]),
  eips: chance.pick([1, 2]),
});

export const isolate = ({ network }: Stage, node: Node): void => {
  for (const other of network.nodes) {
    network.cut(node, other);
    network.cut(other, node);
  }
};

/** The owner of each EIP, or how many there are. */
export const ownersIn = ({ eips, judge }: Stage): readonly string[] =>
  eips.map((eip) => {
    const changes = judge.changesOf(eip).at(-1);
    const owners = judge.ownersOf(eip).map(({ name }) => name);
    return `${owners.join('+')}/${changes?.epoch}`;
  });

export const compare = (before: readonly string[], after: readonly string[], why: string): readonly string[] =>
  before.flatMap((owner, index) => (owner === after[index] ? [] : [`${owner} became ${after[index]} ${why}`]));

const histories = { storm, agents, together, stalls, starved, loss, uplinks, move, again, partition } as const;

export type Kind = keyof typeof histories;

/** All kinds, the one with everything first. */
export const kinds = [
  'storm',
  'agents',
  'together',
  'stalls',
  'starved',
  'loss',
  'uplinks',
  'move',
  'again',
  'partition',
] as const satisfies readonly Kind[];

/** Runs the history of a seed. */
export const run = (kind: Kind, options: ScheduleOptions): readonly string[] =>
  histories[kind](options, new Chance(options.seed));
