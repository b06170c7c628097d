/**
 * Packing endpoints into slices with as few writes as possible. An endpoint stays in its slice; new ones go to slices
 * that have to be written anyway, then to the fullest with room, then to a new slice. A slice that is written anyway
 * and whose endpoints fit into another such slice is emptied into it, so slices do not stay sparse.
 */

import { compareText, hashText } from '../values/hash.ts';
import type { Endpoint } from './endpoints.ts';

/** A slice as it is or as it should be. */
export interface Slice {
  readonly name: string;
  readonly endpoints: readonly Endpoint[];
}

/** What has to be done to the slices of a policy; both lists are empty when nothing has changed. */
export interface SliceChanges {
  /** Slices to create or replace, by name. */
  readonly write: readonly Slice[];
  /** Names of slices to delete. */
  readonly remove: readonly string[];
}

interface Draft {
  readonly name: string;
  readonly endpoints: Endpoint[];
  isChanged: boolean;
}

/** The changes that make `existing` list exactly `wanted`, at most `limit` per slice. `policy` names new slices. */
export const packSlices = (
  policy: string,
  existing: readonly Slice[],
  wanted: readonly Endpoint[],
  limit: number,
): SliceChanges => {
  const missing = new Map(wanted.map((endpoint) => [keyOf(endpoint), endpoint]));
  const drafts = existing
    .toSorted((a, b) => compareText(a.name, b.name))
    .map((slice): Draft => {
      const endpoints: Endpoint[] = [];
      let isChanged = false;
      for (const listed of slice.endpoints) {
        const endpoint = missing.get(keyOf(listed));
        if (endpoint === undefined || endpoints.length === limit) {
          isChanged = true;
          continue;
        }
        missing.delete(keyOf(listed));
        endpoints.push(endpoint);
        isChanged ||= !isSame(endpoint, listed);
      }
      return { name: slice.name, endpoints, isChanged };
    });
  fill(drafts, [...missing.values()], limit, policy);
  mergeChanged(drafts, limit);
  const names = new Set(existing.map(({ name }) => name));
  return {
    write: drafts
      .filter(({ isChanged, endpoints }) => isChanged && endpoints.length > 0)
      .map(({ name, endpoints }) => ({ name, endpoints })),
    remove: drafts.filter(({ name, endpoints }) => endpoints.length === 0 && names.has(name)).map(({ name }) => name),
  };
};

const fill = (drafts: Draft[], missing: readonly Endpoint[], limit: number, policy: string): void => {
  // Slices that are written anyway first; then the fullest, so that few slices change and sparse ones can empty.
  const order = drafts.toSorted(
    (a, b) => Number(b.isChanged) - Number(a.isChanged) || b.endpoints.length - a.endpoints.length,
  );
  let next = 0;
  for (const draft of order) {
    const room = missing.slice(next, next + limit - draft.endpoints.length);
    if (room.length === 0) continue;
    draft.endpoints.push(...room);
    draft.isChanged = true;
    next += room.length;
  }
  const taken = new Set(drafts.map(({ name }) => name));
  while (next < missing.length) {
    const name = freshName(policy, taken);
    taken.add(name);
    drafts.push({ name, endpoints: missing.slice(next, next + limit), isChanged: true });
    next += limit;
  }
};

const mergeChanged = (drafts: readonly Draft[], limit: number): void => {
  const changed = drafts
    .filter(({ isChanged, endpoints }) => isChanged && endpoints.length > 0)
    .toSorted((a, b) => a.endpoints.length - b.endpoints.length);
  for (const [index, small] of changed.entries()) {
    const host = changed
      .slice(index + 1)
      .findLast(({ endpoints }) => endpoints.length + small.endpoints.length <= limit);
    if (host === undefined) continue;
    host.endpoints.push(...small.endpoints.splice(0));
  }
};

// Five letters as Kubernetes makes them for generateName; here they follow from the names that are taken.
const freshName = (policy: string, taken: ReadonlySet<string>): string => {
  for (let attempt = taken.size; ; attempt += 1) {
    const suffix = hashText(`${policy}#${attempt}`).toString(36).padStart(5, '0').slice(-5);
    // Names have at most 253 characters, and the dash and the letters need six.
    const name = `${policy.slice(0, 247)}-${suffix}`;
    if (!taken.has(name)) return name;
  }
};

const keyOf = ({ ns, pod }: Endpoint): string => `${ns}/${pod}`;

const isSame = (a: Endpoint, b: Endpoint): boolean =>
  a.node === b.node && a.ipv4.join() === b.ipv4.join() && a.ipv6.join() === b.ipv6.join();
