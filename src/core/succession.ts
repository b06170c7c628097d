/**
 * Succession: which nodes take an EIP over, in which order, when its owner is lost. Agents act on it without the
 * controller, so it depends only on names: a rendezvous hash over the Ready nodes of the gateway. The EIPs of a lost
 * node so fall to all others, and a node that comes or goes changes the place of nobody else.
 */
import { byRendezvous, type Contender } from './hash.ts';

/** How many successors are named. If they are all lost with the owner, the controller chooses anew. */
export const SUCCESSORS = 3;

/** The names of the nodes that follow `owner`, the next one first. */
export const successorsOf = (
  subjectHash: number,
  owner: string | undefined,
  ready: readonly Contender[],
): readonly string[] => {
  const order = byRendezvous(subjectHash);
  const first: Contender[] = [];
  for (const contender of ready) {
    if (contender.name === owner) continue;
    const place = first.findIndex((other) => order(contender, other) < 0);
    if (place >= 0) first.splice(place, 0, contender);
    else if (first.length < SUCCESSORS) first.push(contender);
    if (first.length > SUCCESSORS) first.pop();
  }
  return first.map(({ name }) => name);
};
