/**
 * Revisions: resource versions of the API server as an order. They are decimal numbers that grow with every write and
 * may be longer than a number can hold, so they are compared as text (Kubernetes API concepts, "Resource versions",
 * 1.35).
 */

/** Negative when `a` is older than `b`, 0 when they are equal, positive when it is newer. */
export const compareRevisions = (a: string, b: string): number => {
  const [left, right] = [withoutZeros(a), withoutZeros(b)];
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
};

const withoutZeros = (text: string): string => (text.startsWith('0') ? text.replace(/^0+/, '') : text);
