/** What must change in the containers so that they hold what is desired. Pure. */
import { touchedBetween } from '../../core/incremental/change-log.ts';
import { isJoinedInterval, type StoredElements, type StoredName, storedContainers } from './stored.ts';

/** How one set or map changes. */
export interface ContainerChange {
  readonly name: StoredName;
  /** True: it is emptied first, and `added` is all that it will hold. */
  readonly isFlushed: boolean;
  readonly deletedKeys: readonly string[];
  readonly added: readonly (readonly [key: string, value: string])[];
  /** How many elements come, go or get another value. */
  readonly differing: number;
}

/** The changes that turn `actual` into `desired`; none for containers that hold the same. */
export const diffElements = (actual: StoredElements, desired: StoredElements): readonly ContainerChange[] =>
  [...storedContainers.keys()].flatMap((name) => {
    // The planner hands over the same map while nothing in it changes, so most containers cost nothing here.
    if (actual[name] === desired[name]) return [];
    const change = diffContainer(name, actual[name], desired[name]);
    return change.differing === 0 ? [] : [change];
  });

/** How many elements come, go or get another value in all of them. */
export const differingIn = (changes: readonly ContainerChange[]): number =>
  changes.reduce((sum, { differing }) => sum + differing, 0);

const diffContainer = (
  name: StoredName,
  actual: ReadonlyMap<string, string>,
  desired: ReadonlyMap<string, string>,
): ContainerChange => {
  const touched = isWrittenWhole(name) ? undefined : touchedBetween(actual, desired);
  return touched === undefined
    ? comparedContainer(name, actual, desired)
    : touchedContainer(name, actual, desired, touched);
};

/** The change of a container that differs in no other keys than these. */
const touchedContainer = (
  name: StoredName,
  actual: ReadonlyMap<string, string>,
  desired: ReadonlyMap<string, string>,
  touched: ReadonlySet<string>,
): ContainerChange => {
  const keys = [...touched].filter((key) => actual.get(key) !== desired.get(key));
  const deletedKeys = keys.filter((key) => actual.has(key));
  const added = keys.flatMap((key) => {
    const value = desired.get(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return { name, isFlushed: false, deletedKeys, added, differing: keys.length };
};

const comparedContainer = (
  name: StoredName,
  actual: ReadonlyMap<string, string>,
  desired: ReadonlyMap<string, string>,
): ContainerChange => {
  const deletedKeys: string[] = [];
  const added: (readonly [string, string])[] = [];
  let replaced = 0;
  let same = 0;
  // Two maps of the planner have nearly the same order, so a key is first sought at the place of its twin: for ten
  // thousand pods that is several times faster than to look up each.
  const twins = actual.entries();
  let isInStep = true;
  for (const element of desired) {
    const [key, value] = element;
    if (isInStep) {
      const twin = twins.next().value;
      isInStep = twin !== undefined && twin[0] === key;
      if (isInStep && twin?.[1] === value) {
        same += 1;
        continue;
      }
    }
    const held = actual.get(key);
    if (held === value) {
      same += 1;
      continue;
    }
    if (held !== undefined) {
      deletedKeys.push(key);
      replaced += 1;
    }
    added.push(element);
  }
  // Every key that is held was met: then none is left over.
  if (same + replaced < actual.size) {
    for (const key of actual.keys()) if (!desired.has(key)) deletedKeys.push(key);
  }
  const differing = deletedKeys.length + added.length - replaced;
  return isWrittenWhole(name) && differing > 0
    ? { name, isFlushed: true, deletedKeys: [], added: [...desired], differing }
    : { name, isFlushed: false, deletedKeys, added, differing };
};

/**
 * Plain interval containers are a tree of interval ends in the kernel, and nft reads the whole of it for each change to
 * look for overlaps. They are small, so all of it is written: no order of deletions and additions to get wrong. Joined
 * keys (class and destination) are kept otherwise, are many, and change one by one.
 */
const isWrittenWhole = (name: StoredName): boolean =>
  storedContainers.get(name)?.isInterval === true && !isJoinedInterval(name);
