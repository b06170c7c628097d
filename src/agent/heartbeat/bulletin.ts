/**
 * Bulletin gathers what the thread tells within one turn of its event loop, and posts it as one message: when a node with a
 * thousand EIPs is lost, it has thousands of things to tell at once. Of what replaces what was told before, only the last is posted.
 */

/** The kinds of which a later one says all that an earlier one said. */
const replacing: ReadonlySet<string> = new Set(['hold', 'lease', 'opened', 'conflicts']);

export class Bulletin<Item extends { readonly kind: string }> {
  readonly #post: (items: readonly Item[]) => void;
  /** Calls back when the turn is over. */
  readonly #atEnd: (callback: () => void) => void;
  #items: Item[] = [];
  /** Where the last of each replacing kind is. */
  readonly #placeByKind = new Map<string, number>();

  constructor(post: (items: readonly Item[]) => void, atEnd: (callback: () => void) => void) {
    this.#post = post;
    this.#atEnd = atEnd;
  }

  /** Tells it at the end of the turn, after what was told before. */
  tell(item: Item): void {
    if (this.#items.length === 0) this.#atEnd(() => this.#flush());
    const place = this.#placeByKind.get(item.kind);
    if (place !== undefined) this.#items[place] = item;
    else {
      if (replacing.has(item.kind)) this.#placeByKind.set(item.kind, this.#items.length);
      this.#items.push(item);
    }
  }

  #flush(): void {
    const items = this.#items;
    this.#items = [];
    this.#placeByKind.clear();
    this.#post(items);
  }
}
