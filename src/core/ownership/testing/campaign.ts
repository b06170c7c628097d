/** Campaign: many histories of all kinds, and what to do with one that fails. */
import { type Kind, kinds, run } from './histories.ts';

/** Of twenty histories so many are of a kind: the more that can happen in it, the more of them. */
const shareByKind: Readonly<Record<Kind, number>> = {
  storm: 5,
  agents: 3,
  together: 1,
  // Each takes as long as thirty others.
  stalls: 0.2,
  // And each of these as ten.
  starved: 0.6,
  loss: 2,
  uplinks: 1,
  move: 2,
  again: 1,
  partition: 4.2,
};
const SHOWN = 10;

/** How many histories of each kind make up `total`. */
export const shares = (total: number): readonly { readonly kind: Kind; readonly count: number }[] =>
  kinds.map((kind) => ({ kind, count: (total / 20) * shareByKind[kind] }));

/** Runs histories from a seed on. Returns those that failed, as `kind:seed` and what went wrong; a few are enough. */
export const failuresIn = (kind: Kind, firstSeed: number, count: number): readonly string[] => {
  const failed: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + count && failed.length < SHOWN; seed += 1) {
    const faults = run(kind, { seed });
    if (faults.length > 0) failed.push(`${kind}:${seed} ${faults.join('; ')}`);
  }
  return failed;
};

/** Runs one history, given as `kind:seed`, and prints what every node did. Returns what went wrong. */
export const replay = (name: string, print: (line: string) => void): readonly string[] => {
  const [first, seed] = name.split(':');
  const kind = kinds.find((one) => one === first);
  if (kind === undefined) throw new Error(`${first} is not one of ${kinds.join(', ')}`);
  return run(kind, {
    seed: Number(seed),
    onEffect: (timeMs, node, effect) => {
      const isRoutine = effect.kind === 'send' && (effect.message.kind === 'beat' || effect.message.kind === 'ack');
      if (!isRoutine && effect.kind !== 'renew') print(`${timeMs.toFixed(1)} ${node.name} ${JSON.stringify(effect)}`);
    },
  });
};
