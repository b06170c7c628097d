/**
 * Stalls: one node stands still for a while, its agent alone or the whole machine, or its clock jumps. At no moment two kernels answer
 * for an EIP: not while it stands still, and not when it goes on. Nor does nobody for long.
 */

import type { Chance } from './chance.ts';
import { compare, ownersIn, sizes } from './histories.ts';
import type { Node } from './network.ts';
import { type ScheduleOptions, type Stage, stageOf } from './stage.ts';

/** Beside the grace of 30 s. A tenth of both shows the same, in a tenth of the time. */
const stallsMs = [1_000, 5_000, 29_000, 35_000, 120_000] as const;
const usualGraceMs = 30_000;
/** An EIP has no owner for less than this. */
const gapMs = 500;

export const stalls = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const links = { loss: chance.pick([0, 0.005]), doubling: 0.01, delayMs: [0.2, 3] as const, stragglers: 0 };
  const graceMs = chance.pick([usualGraceMs / 10, usualGraceMs / 10, usualGraceMs / 5]);
  const stage = stageOf(options, { ...sizes(chance), witnesses: 1, links, graceMs, skew: 0.02 }, chance);
  const { network, timing, settle } = stage;
  settle(400);
  stage.run(network.timeMs + 60);
  const before = ownersIn(stage);
  const [node] = network.nodes;
  if (node === undefined) return ['there is no node'];
  const forMs = (chance.pick(stallsMs) * graceMs) / usualGraceMs;
  const how = chance.pick(['stop', 'stop', 'suspend', 'jump', 'jump with the kernel'] as const);
  const fromMs = network.timeMs + chance.between(0, timing.renewMs);
  network.at(fromMs, () => begin(stage, node, how, forMs));
  network.at(fromMs + forMs, () => network.resume(node));
  const watch = new Watch(stage);
  network.runUntil(fromMs + forMs + 2 * gapMs, () => watch.look());
  watch.look();
  const isShort = how === 'stop' && forMs < timing.leaseMs / 2;
  const moved = isShort ? compare(before, ownersIn(stage), `though it was stopped for ${forMs} ms only`) : [];
  return [...watch.faults, ...moved].map((fault) => `${fault} (${how} for ${forMs} ms)`);
};

const begin = ({ network }: Stage, node: Node, how: string, forMs: number): void => {
  if (how === 'stop') network.pause(node);
  else if (how === 'suspend') network.suspend(node);
  else network.jump(node, forMs, how === 'jump with the kernel');
};

/** Sees two owners at once, and nobody for long. */
class Watch {
  readonly #stage: Stage;
  readonly #ownedAtMs: number[];
  readonly faults: string[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#ownedAtMs = stage.eips.map(() => stage.network.timeMs);
  }

  look(): void {
    const { network, judge, eips } = this.#stage;
    if (this.faults.length > 0) return;
    for (const [index, eip] of eips.entries()) {
      const owners = judge.ownersOf(eip).map(({ name }) => name);
      const sinceMs = network.timeMs - (this.#ownedAtMs[index] ?? 0);
      if (owners.length > 0) this.#ownedAtMs[index] = network.timeMs;
      if (owners.length > 1) this.faults.push(`${eip} is owned by ${owners.join(' and ')} at ${network.timeMs} ms`);
      else if (sinceMs > gapMs)
        this.faults.push(`${eip} was owned by nobody for ${sinceMs} ms at ${network.timeMs} ms`);
    }
  }
}
