/**
 * Marks: the number that stands for a node, written 0x26vvvv00. `vvvv` comes from the node name, so that a node that
 * is made anew gets the mark it had; where two names come to the same, the younger tunnel gets the next free one. A mark
 * never changes once it is recorded, and the API server sees to that too.
 */
import { assignUnique } from '../values/assign-unique.ts';
import { hashText } from '../values/hash.ts';

/** A node and the mark on record. Claims come in the order of their right. */
export interface MarkClaim {
  readonly node: string;
  readonly recorded: string | undefined;
}

const PREFIX = 0x26;
// `vvvv` zero is left out: 0x26000000 stands for all of our marks in rules.
const VALUES = 0xffff;

/** A mark for every node, by name; those for which none is left are missing. `reserved` marks are not given anew. */
export const assignMarks = (claims: readonly MarkClaim[], reserved: readonly string[] = []): Map<string, string> => {
  const values = assignUnique(
    claims.map(({ node, recorded }) => ({ name: node, recorded: distinctBits(recorded), hash: () => hashText(node) })),
    { size: VALUES, at: (place) => place + 1 },
    reserved.map(distinctBits).filter((value) => value !== undefined),
  );
  return new Map(
    claims.flatMap(({ node, recorded }): [string, string][] => {
      const value = values.get(node);
      if (value === undefined) return [];
      // The last two digits of a mark that another program recorded are kept: a mark is immutable as a text.
      return [[node, recorded !== undefined && distinctBits(recorded) === value ? recorded : markOf(value)]];
    }),
  );
};

const markOf = (value: number): string => `0x${((PREFIX << 24) | (value << 8)).toString(16)}`;

/** The 16 bits that tell two marks apart, never zero; undefined for a text that is not one of our marks. */
export const distinctBits = (mark: string | undefined): number | undefined => {
  if (mark === undefined || !/^0x26[0-9a-f]{6}$/.test(mark)) return undefined;
  return (Number.parseInt(mark.slice(2), 16) >>> 8) & VALUES || undefined;
};
