/** Story: a small cluster in which every EIP has its owner, for tests that tell what happens next. */
import assert from 'node:assert/strict';
import { cidr } from '../../testing/address.ts';
import type { Effect, Input } from '../port.ts';
import { Chance } from './chance.ts';
import type { Node } from './network.ts';
import { allEips, quietLinks, type Stage, type StageSettings, stageOf } from './stage.ts';

const [first = assert.fail()] = allEips;
/** The EIP that stories are about. */
export const eip = first;

/** Something that a node did. */
export interface Told {
  readonly atMs: number;
  readonly node: string;
  readonly effect: Effect;
}

/** A cluster in which every EIP has its owner; n0 owns the first. */
export const started = (settings: Partial<StageSettings> = {}) => {
  const told: Told[] = [];
  const onEffect = (atMs: number, { name }: Node, effect: Effect) => told.push({ atMs, node: name, effect });
  const base = { gateways: 3, witnesses: 0, eips: 1, links: quietLinks, graceMs: 1_300, skew: 0 };
  const stage = stageOf({ seed: 1, onEffect }, { ...base, ...settings }, new Chance(1));
  stage.run(300);
  assert.deepEqual(ownersOf(stage), ['n0']);
  return { ...stage, told, node: (index: number) => stage.network.nodes[index] ?? assert.fail() };
};
/** Who answers for the EIP. */
export const ownersOf = ({ judge }: Pick<Stage, 'judge'>): string[] => judge.ownersOf(eip).map(({ name }) => name);
/** What the agent of a node is told when these networks are lost there, or none any more. */
export const uplink = (...networks: readonly string[]): Input => ({
  kind: 'uplink',
  unreached: networks.map((network) => ({ network: cidr(network), isLost: true })),
});
/** Both families as a whole. */
export const bothFamilies = ['0.0.0.0/0', '::/0'] as const;
/** Cuts a node off from all others. */
export const isolate = ({ network }: Pick<Stage, 'network'>, node: Node): void => {
  for (const other of network.nodes) {
    network.cut(node, other);
    network.cut(other, node);
  }
};
/** What was told to people after a time. */
export const eventsIn = (told: readonly Told[], afterMs: number) =>
  told.flatMap(({ atMs, node, effect }) =>
    effect.kind === 'event' && atMs > afterMs ? [{ atMs, node, reason: effect.reason, cause: effect.cause }] : [],
  );
