/**
 * Storm: anything may break, at any time, together. What must hold: never two owners beyond what a stopped agent excuses,
 * and soon after everything is healed one owner for each EIP that stays.
 */
import { majorityOf, votesOf } from '../holdings.ts';
import type { OwnershipPlan } from '../port.ts';
import type { Chance } from './chance.ts';
import type { Node } from './network.ts';
import { type ScheduleOptions, type Stage, stageOf } from './stage.ts';
import { anyUnreached } from './uplinks.ts';

const BROKEN_FROM_MS = 140;
const BROKEN_FOR_MS = 220;
/** What was broken before it was healed may still come to light, such as an owner that has to yield. */
const HEALING_MS = 120;
const SETTLING_MS = 600;
const QUIET_MS = 60;

/** Runs a storm. Returns what went wrong. */
export const storm = (options: ScheduleOptions, chance: Chance): readonly string[] => {
  const stage = stageOf(
    options,
    {
      gateways: chance.pick([2, 2, 2, 3, 3, 4]),
      witnesses: chance.pick([0, 0, 1, 1, 2]),
      eips: chance.pick([1, 1, 2]),
      graceMs: chance.pick([400, 1_000]),
      skew: chance.pick([0, 0.02]),
      links: {
        loss: chance.pick([0, 0, 0.02, 0.1, 0.25]),
        doubling: chance.pick([0, 0.05]),
        delayMs: [0.2, chance.pick([1, 1, 5, 12])],
        stragglers: chance.pick([0, 0, 0.02]),
      },
    },
    chance,
  );
  const { network, judge, run, settle } = stage;
  const weather = new Weather(stage);
  const healAtMs = BROKEN_FROM_MS + BROKEN_FOR_MS;
  for (let left = chance.pick([1, 2, 2, 3, 4, 6]); left > 0; left -= 1) {
    network.at(chance.between(BROKEN_FROM_MS, healAtMs), () => weather.strike());
  }
  network.at(healAtMs, () => weather.clear());
  run(healAtMs + HEALING_MS);
  settle(healAtMs + SETTLING_MS);
  const before = stage.eips.map((eip) => judge.changesOf(eip).length);
  run(network.timeMs + QUIET_MS);
  settle(healAtMs + SETTLING_MS + QUIET_MS);
  const faults = [...judge.faults];
  for (const [index, eip] of stage.eips.entries()) {
    const owners = judge.ownersOf(eip);
    const names = owners.map(({ name }) => name).join(' and ') || 'nobody';
    if (owners.length !== 1) faults.push(`${eip} is owned by ${names} when all is healed`);
    // Once is allowed: a plan that could not be followed before.
    const moves = judge.changesOf(eip).length - (before[index] ?? 0);
    if (moves > 1) faults.push(`${eip} moves ${moves} times when all is healed`);
  }
  return faults;
};

class Weather {
  readonly #stage: Stage;
  #plan: OwnershipPlan;
  readonly #dead = new Set<Node>();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#plan = stage.plan;
  }

  /** Breaks something. */
  strike(): void {
    const { chance, network } = this.#stage;
    const node = chance.pick(network.nodes);
    const soonMs = network.timeMs + chance.between(10, 160);
    const fault = chance.pick(faults);
    switch (fault) {
      case 'crash':
        network.crash(node);
        network.at(soonMs, () => network.start(node));
        break;
      case 'pause':
        network.pause(node);
        network.at(soonMs, () => network.resume(node));
        break;
      case 'power':
        network.powerOff(node);
        if (chance.isLucky(0.5)) network.at(soonMs, () => network.powerOn(node));
        else this.#dead.add(node);
        break;
      case 'isolate':
        for (const other of network.nodes) this.#cut(node, other, chance.pick(['both', 'both', 'out', 'in']));
        node.hasApi = chance.isLucky(0.5);
        break;
      case 'split': {
        const here = network.nodes.filter(() => chance.isLucky(0.5));
        for (const one of here) {
          for (const other of network.nodes) if (!here.includes(other)) this.#cut(one, other, 'both');
        }
        break;
      }
      case 'holes':
        for (const one of network.nodes) {
          for (const other of network.nodes) if (chance.isLucky(0.3)) network.cut(one, other);
        }
        break;
      case 'heal':
        network.healLinks();
        break;
      case 'uplink':
        network.tell(node, { kind: 'uplink', unreached: anyUnreached(chance) });
        network.at(soonMs, () => network.tell(node, { kind: 'uplink', unreached: [] }));
        break;
      case 'move':
        this.#publish({ ...this.#plan, eips: this.#plan.eips.map((planned) => this.#moved(planned)) });
        break;
      case 'voters':
        this.#publish({ ...this.#plan, electorate: this.#electorate() });
        break;
      default:
        for (const one of network.nodes) one.hasApi = false;
    }
  }

  /** Heals everything. Some nodes that are dead stay so, if a majority is left without them. */
  clear(): void {
    const { network, chance } = this.#stage;
    const { electorate } = this.#plan;
    network.healLinks();
    network.links = { loss: 0, doubling: 0, delayMs: [0.2, 2], stragglers: 0 };
    const absent = new Set<string>();
    for (const node of network.nodes) {
      node.hasApi = true;
      const lost = electorate.voters.filter((name) => absent.has(name) || name === node.name).length;
      const gatewaysLeft = this.#plan.gateways.filter((name) => !absent.has(name) && name !== node.name).length;
      // An API server that votes beside an odd number of nodes is a step between two electorates, and no help to all.
      const votes = electorate.voters.length % 2 === 1 ? electorate.voters.length : votesOf(electorate);
      const mayStay = votes - lost >= majorityOf(electorate) && gatewaysLeft > 0 && chance.isLucky(0.5);
      if (this.#dead.has(node) && !node.isPowered && mayStay) {
        absent.add(node.name);
        continue;
      }
      network.resume(node);
      if (node.isPowered) network.start(node);
      else network.powerOn(node);
      network.tell(node, { kind: 'uplink', unreached: [] });
      network.setPlan(node, this.#plan);
    }
  }

  #cut(one: Node, other: Node, direction: 'both' | 'out' | 'in'): void {
    if (one === other) return;
    if (direction !== 'in') this.#stage.network.cut(one, other);
    if (direction !== 'out') this.#stage.network.cut(other, one);
  }

  #moved(planned: OwnershipPlan['eips'][number]): OwnershipPlan['eips'][number] {
    const { chance, judge } = this.#stage;
    const first = chance.pick(planned.candidates);
    const epoch = judge.changesOf(planned.eip).at(-1)?.epoch ?? 0;
    return { ...planned, epoch, candidates: [first, ...planned.candidates.filter((name) => name !== first)] };
  }

  /** One voter more or less: only one step per history, as a controller waits until nodes know the last one. */
  #electorate(): OwnershipPlan['electorate'] {
    const { voters, generation, hasApi } = this.#plan.electorate;
    if (generation > 1) return this.#plan.electorate;
    const { chance } = this.#stage;
    if (voters.length < 3 || chance.isLucky(0.3)) return { generation: generation + 1, voters, hasApi: !hasApi };
    const gone = chance.pick(voters);
    return { generation: generation + 1, voters: voters.filter((name) => name !== gone), hasApi };
  }

  /** The API tells the nodes that can reach it, one after the other. */
  #publish(plan: OwnershipPlan): void {
    const { network, chance } = this.#stage;
    this.#plan = plan;
    for (const node of network.nodes) {
      network.at(network.timeMs + chance.between(1, 40), () => {
        if (node.hasApi && plan === this.#plan) network.setPlan(node, plan);
      });
    }
  }
}

const faults = [
  'crash',
  'crash',
  'pause',
  'pause',
  'power',
  'power',
  'isolate',
  'isolate',
  'split',
  'holes',
  'heal',
  'uplink',
  'move',
  'voters',
  'api',
] as const;
