/**
 * Gateway numbers stand for gateway nodes in marks and routing tables of one node. A node keeps its number while it is
 * used. A number that has just become free is the last to be given again: routes change before rules do, and for a
 * moment packets of the old gateway node would go to the new one.
 */
import { compareText } from '../values/hash.ts';
import { GATEWAY_NUMBERS } from './numbers.ts';

/** A number for every node, as far as they go. The previous map itself comes back when it says the same. */
export const assignGatewayNumbers = (
  nodes: ReadonlySet<string>,
  previous: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> => {
  const kept = new Map<string, number>();
  const taken = new Set<number>();
  for (const [node, number] of [...previous].toSorted(([a], [b]) => compareText(a, b))) {
    if (!nodes.has(node) || !isNumber(number) || taken.has(number)) continue;
    kept.set(node, number);
    taken.add(number);
  }
  if (kept.size === nodes.size && kept.size === previous.size) return previous;
  const lately = new Set(previous.values());
  const all = Array.from({ length: GATEWAY_NUMBERS }, (_, index) => index + 1).filter((number) => !taken.has(number));
  const free = [...all.filter((number) => !lately.has(number)), ...all.filter((number) => lately.has(number))];
  const fresh = [...nodes].filter((node) => !kept.has(node)).toSorted(compareText);
  for (const [index, node] of fresh.entries()) {
    const number = free[index];
    if (number !== undefined) kept.set(node, number);
  }
  return kept;
};

// Numbers may have been read from the kernel, where anybody can write.
const isNumber = (number: number): boolean => Number.isInteger(number) && number >= 1 && number <= GATEWAY_NUMBERS;
