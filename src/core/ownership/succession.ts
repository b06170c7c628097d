/**
 * Succession: which nodes take an EIP over, in which order, when its owner is lost. Agents act on it without the
 * controller, so it depends only on names: a rendezvous hash over the Ready nodes of the gateway. The EIPs of a lost
 * node so fall to all others, and a node that comes or goes changes the place of nobody else.
 */
import { type Contender, hashPair } from '../values/hash.ts';

/** How many successors are named. If they are all lost with the owner, the controller chooses anew. */
export const SUCCESSORS = 3;

/** The names of the nodes that follow `owner`, the next one first: the order of byRendezvous. */
export const successorsOf = (
  subjectHash: number,
  owner: string | undefined,
  ready: readonly Contender[],
): readonly string[] => {
  // Every EIP asks every node: scores are made once, and most nodes are passed over at the first look.
  const first: { readonly name: string; readonly score: number }[] = [];
  for (const { name, hash } of ready) {
    if (name === owner) continue;
    const score = hashPair(subjectHash, hash);
    const last = first[SUCCESSORS - 1];
    if (last !== undefined && score < last.score) continue;
    const isBefore = (other: { readonly name: string; readonly score: number }): boolean =>
      score > other.score || (score === other.score && name < other.name);
    const place = first.findIndex(isBefore);
    first.splice(place < 0 ? first.length : place, 0, { name, score });
    if (first.length > SUCCESSORS) first.pop();
  }
  return first.map(({ name }) => name);
};
