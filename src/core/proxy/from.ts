/** Whose pods may use the rules of an object: those of its own namespace, and of whom the object or its proxy names. */

import { type Labels, matches } from '../cluster/labels.ts';
import { compareText } from '../values/hash.ts';
import type { EgressView, ProxyView } from './view.ts';

/** Namespaces, sorted; undefined: whoever reaches the proxy. */
export type From = readonly string[] | undefined;

/** Who may use the rules of the object. `namespaces` has the labels of all there are. */
export const fromOf = (
  { namespace, sources }: Pick<EgressView, 'namespace' | 'sources'>,
  { isForAnyone }: Pick<ProxyView, 'isForAnyone'>,
  namespaces: ReadonlyMap<string, Labels>,
): From => {
  if (sources === undefined) return isForAnyone ? undefined : [namespace];
  if (sources.kind === 'any') return undefined;
  const { selector } = sources;
  const selected = selector === undefined ? [] : [...namespaces].filter(([, labels]) => matches(selector, labels));
  return sorted([namespace, ...sources.namespaces, ...selected.map(([name]) => name)]);
};

/** Who may use a rule that two objects have, each for its own clients. */
export const unionOf = (one: From, other: From): From =>
  one === undefined || other === undefined ? undefined : sorted([...one, ...other]);

const sorted = (names: readonly string[]): string[] => [...new Set(names)].toSorted(compareText);
