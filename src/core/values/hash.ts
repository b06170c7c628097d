/**
 * Hashes that decide ties. They are not for security: they only have to give the same number on every machine and in
 * every version, because a changed hash would change decisions of a running cluster. hash.test.ts pins values.
 */

/** A 32-bit number from a text: FNV-1a over its UTF-16 units, then the final mix of MurmurHash3. */
export const hashText = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mix(hash);
};

/** A 32-bit number from two, in this order; every bit of both matters. */
export const hashPair = (first: number, second: number): number => mix(mix(first) ^ Math.imul(second, 0x9e3779b1));

const mix = (value: number): number => {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
};

/** Something that can win a rendezvous: its name decides equal scores, `hash` is hashText of the name. */
export interface Contender {
  readonly name: string;
  readonly hash: number;
}

/**
 * Orders contenders by rendezvous hashing for a subject, best first. Who comes first depends only on the subject and
 * the contender, so taking one contender away moves only the subjects that it had.
 */
export const byRendezvous =
  (subjectHash: number) =>
  (a: Contender, b: Contender): number =>
    hashPair(subjectHash, b.hash) - hashPair(subjectHash, a.hash) || compareText(a.name, b.name);

/** Orders texts by UTF-16 units: the same everywhere, unlike the order of a locale. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
