/**
 * LabelIndex files keys under a namespace and tokens of labels. Pods are filed under all tokens of their labels, policies
 * under the anchors of their selectors (src/core/cluster/labels.ts), so each side finds its candidates on the other without
 * asking everybody. A candidate may still not match.
 */

/** Keys by namespace and token. Cluster policies are filed under the namespace ''. */
export class LabelIndex<K extends string> {
  /** namespace -> token -> keys */
  readonly #filesByNamespace = new Map<string, Map<string, Set<K>>>();

  /** Files a key. May be called twice. */
  file(namespace: string, tokens: Iterable<string>, key: K): void {
    const files = this.#filesByNamespace.get(namespace) ?? new Map<string, Set<K>>();
    this.#filesByNamespace.set(namespace, files);
    for (const token of tokens) {
      const keys = files.get(token);
      if (keys === undefined) files.set(token, new Set([key]));
      else keys.add(key);
    }
  }

  /** Takes a key out; the tokens must be those it was filed under. Leaves no empty files behind. */
  takeOut(namespace: string, tokens: Iterable<string>, key: K): void {
    const files = this.#filesByNamespace.get(namespace);
    if (files === undefined) return;
    for (const token of tokens) {
      const keys = files.get(token);
      keys?.delete(key);
      if (keys?.size === 0) files.delete(token);
    }
    if (files.size === 0) this.#filesByNamespace.delete(namespace);
  }

  /** The keys under any of the tokens; a key under two of them comes twice. */
  *find(namespace: string, tokens: Iterable<string>): Generator<K> {
    const files = this.#filesByNamespace.get(namespace);
    if (files === undefined) return;
    for (const token of tokens) yield* files.get(token) ?? [];
  }

  /** The namespaces that have keys, in no order. */
  namespaces(): Iterable<string> {
    return this.#filesByNamespace.keys();
  }
}
