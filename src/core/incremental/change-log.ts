/**
 * Change logs tell how two values of a series differ without reading either of them. Of a list of thousands of policies one
 * changes, and so does one element of each map that is made from it: whoever makes the next value notes what is other in it,
 * and whoever knows an earlier one asks for the notes since. A change log is short, so the answer may be that nobody knows:
 * then the two values have to be compared. Values stay plain lists and maps, and one without a change log is compared too.
 */

/** How far back a change log goes: more changes at once cost more than reading everything does. */
const limit = 256;

/** The notes of one series, the latest last. */
class Notes<Note> {
  #notes: Note[] = [];
  /** How many are not kept any more. */
  #lost = 0;

  add(note: Note): void {
    this.#notes.push(note);
    if (this.#notes.length < 2 * limit) return;
    this.#notes = this.#notes.slice(limit);
    this.#lost += limit;
  }

  /** How many there are, and have been. */
  get count(): number {
    return this.#lost + this.#notes.length;
  }

  /** The notes from one count to another; undefined when some of them are lost. */
  between(from: number, to: number): readonly Note[] | undefined {
    return from < this.#lost || from > to ? undefined : this.#notes.slice(from - this.#lost, to - this.#lost);
  }
}

/** Where in its series a value is. */
interface ChangePosition<Note> {
  readonly notes: Notes<Note>;
  readonly at: number;
}

const between = <Note>(
  from: ChangePosition<Note> | undefined,
  to: ChangePosition<Note> | undefined,
): readonly Note[] | undefined =>
  from?.notes === to?.notes && to !== undefined ? from?.notes.between(from.at, to.at) : undefined;

/** An item that is in a list no more, and the one that has come instead; one of them may be missing. */
interface Exchange {
  readonly gone: unknown;
  readonly come: unknown;
}

/** What makes one list another one. Items are told apart by identity. */
export interface Exchanged<T> {
  readonly gone: ReadonlySet<T>;
  readonly come: ReadonlySet<T>;
}

const listPositions = new WeakMap<readonly unknown[], ChangePosition<Exchange>>();
const mapPositions = new WeakMap<ReadonlyMap<unknown, unknown>, ChangePosition<unknown>>();

/** The change log of lists that follow each other. Only their items count, not the order. */
export class ListChangeLog<T> {
  readonly #notes = new Notes<Exchange>();

  exchange(gone: T | undefined, come: T | undefined): void {
    this.#notes.add({ gone, come });
  }

  /** Says that a list has all that was noted, and nothing else that is other than in the last one. Returns it. */
  mark<List extends readonly T[]>(list: List): List {
    listPositions.set(list, { notes: this.#notes, at: this.#notes.count });
    return list;
  }
}

/** The change log of maps that follow each other. */
export class MapChangeLog<K> {
  readonly #notes = new Notes<unknown>();

  /** Says that a key has come, gone, or has another value. */
  touch(key: K): void {
    this.#notes.add(key);
  }

  /** Says that a map differs from the last one in no other keys than those that were touched. Returns it. */
  mark<Some extends ReadonlyMap<K, unknown>>(map: Some): Some {
    mapPositions.set(map, { notes: this.#notes, at: this.#notes.count });
    return map;
  }
}

/** What has gone from the earlier list and come into the later one; undefined when nobody knows. */
export const exchangedBetween = <T>(earlier: readonly T[], later: readonly T[]): Exchanged<T> | undefined => {
  const notes = between(listPositions.get(earlier), listPositions.get(later));
  if (notes === undefined) return undefined;
  const [gone, come] = [new Set<unknown>(), new Set<unknown>()];
  for (const note of notes) {
    if (note.gone !== undefined && !come.delete(note.gone)) gone.add(note.gone);
    if (note.come !== undefined && !gone.delete(note.come)) come.add(note.come);
  }
  // The change log of lists of T noted nothing else.
  return { gone, come } as Exchanged<unknown> as Exchanged<T>;
};

/** The keys in which two maps may differ; undefined when nobody knows. */
export const touchedBetween = <K>(
  earlier: ReadonlyMap<K, unknown>,
  later: ReadonlyMap<K, unknown>,
): ReadonlySet<K> | undefined => {
  const notes = between(mapPositions.get(earlier), mapPositions.get(later));
  // The change log of maps with such keys noted nothing else.
  return notes && (new Set(notes) as ReadonlySet<unknown> as ReadonlySet<K>);
};

/** The keys in which two maps may differ: those that were touched, or all when nobody knows. */
export const keysToCompare = <K>(earlier: ReadonlyMap<K, unknown>, later: ReadonlyMap<K, unknown>): ReadonlySet<K> =>
  touchedBetween(earlier, later) ?? keysOfEither(earlier, later);

/** The keys of two maps. */
export const keysOfEither = <K>(one: ReadonlyMap<K, unknown>, other: ReadonlyMap<K, unknown>): ReadonlySet<K> =>
  new Set(one.keys()).union(other);
