/**
 * Label selectors, compiled once when an object is read and then asked often. A selector is the list of its
 * requirements in one order, so two selectors that say the same are equal as text.
 */
import type { LabelSelector } from '../../api/label-selector.ts';
import { compareText } from '../values/hash.ts';
import { type Decided, decided, refusedWith } from './finding.ts';

/** The labels of a node, namespace or pod. */
export type Labels = Readonly<Record<string, string>>;

/** One requirement; all values of `In` and `NotIn` are in `values`, sorted. */
export interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** A compiled selector. Without requirements it matches everything. */
export interface Selector {
  readonly requirements: readonly Requirement[];
  /**
   * Under which tokens the selector is filed. Whatever it matches has at least one of them among its own tokens, so an
   * index by anchors finds every match.
   */
  readonly anchors: readonly string[];
  /** Tokens that everything has which the selector matches. */
  readonly tokens: readonly string[];
}

/** Compiles a selector; `where` names the object and field in the sentence of a refusal. Absent means everything. */
export const compileSelector = (selector: LabelSelector | undefined, where: string): Decided<Selector> => {
  const requirements: Requirement[] = [
    ...Object.entries(selector?.matchLabels ?? {}).map(
      ([key, value]): Requirement => ({ key, operator: 'In', values: [value] }),
    ),
    ...(selector?.matchExpressions ?? []).map(
      ({ key, operator, values = [] }): Requirement => ({
        key,
        operator,
        values: [...new Set(values)].toSorted(compareText),
      }),
    ),
  ];
  for (const { key, values } of requirements) {
    if (!isLabelKey(key)) {
      return refusedWith(
        'SelectorInvalid',
        `${where} has the label key ${JSON.stringify(key)}, which no label can have.`,
      );
    }
    const strange = values.find((value) => !isLabelValue(value));
    if (strange !== undefined) {
      return refusedWith(
        'SelectorInvalid',
        `${where} asks ${key} for the value ${JSON.stringify(strange)}, which no label can have.`,
      );
    }
  }
  return decided(selectorOf(requirements.toSorted(compareRequirements)));
};

/** True when all requirements hold. `NotIn` holds where the label is absent, as in Kubernetes. */
export const matches = ({ requirements }: Selector, labels: Labels): boolean =>
  requirements.every(({ key, operator, values }) => {
    const value = labels[key];
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return operator satisfies never;
    }
  });

/** True when everything that `inner` matches is certainly matched by `outer`. False may also mean "cannot be said". */
export const covers = (outer: Selector, inner: Selector): boolean =>
  outer.requirements.every((wanted) => inner.requirements.some((given) => implies(given, wanted)));

const implies = (given: Requirement, wanted: Requirement): boolean => {
  if (given.key !== wanted.key) return false;
  switch (wanted.operator) {
    case 'In':
      return given.operator === 'In' && given.values.every((value) => wanted.values.includes(value));
    case 'Exists':
      return given.operator === 'In' || given.operator === 'Exists';
    case 'DoesNotExist':
      return given.operator === 'DoesNotExist';
    case 'NotIn':
      if (given.operator === 'DoesNotExist') return true;
      if (given.operator === 'In') return given.values.every((value) => !wanted.values.includes(value));
      return given.operator === 'NotIn' && wanted.values.every((value) => given.values.includes(value));
    default:
      return wanted.operator satisfies never;
  }
};

/** The token that everything has; no label key can be written like this. */
export const ANY = '*';

/** The tokens of labels. */
export const tokensOfLabels = (labels: Labels): string[] => {
  // A loop, because an agent that starts asks this for every pod of its node.
  const tokens = [ANY];
  for (const key in labels) tokens.push(key, tokenOf(key, labels[key] ?? ''));
  return tokens;
};

const tokenOf = (key: string, value: string): string => `${key}=${value}`;

const selectorOf = (requirements: readonly Requirement[]): Selector => {
  const positive = requirements.filter(({ operator }) => operator === 'In' || operator === 'Exists');
  const filed = positive.map(({ key, values }) => ({ key, valueTokens: values.map((value) => tokenOf(key, value)) }));
  const [first] = filed;
  return {
    requirements,
    anchors: first === undefined ? [ANY] : positive[0]?.operator === 'In' ? first.valueTokens : [first.key],
    // A copy has just the room it needs: an agent keeps thousands.
    tokens: [ANY, ...filed.flatMap(({ key, valueTokens }) => [key, ...valueTokens])].slice(),
  };
};

/** The selector that matches everything. */
export const everything: Selector = selectorOf([]);

/** The selector that matches nothing: what stands in for one that cannot be read. */
export const nothing: Selector = selectorOf([
  { key: 'nothing', operator: 'Exists', values: [] },
  { key: 'nothing', operator: 'DoesNotExist', values: [] },
]);

const compareRequirements = (a: Requirement, b: Requirement): number =>
  compareText(a.key, b.key) || compareText(a.operator, b.operator) || compareText(a.values.join(), b.values.join());

// The forms of Kubernetes: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ (2026).
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const isLabelKey = (key: string): boolean => {
  const slash = key.indexOf('/');
  const name = key.slice(slash + 1);
  if (slash >= 0 && (!PREFIX.test(key.slice(0, slash)) || slash > 253)) return false;
  return name.length <= 63 && NAME.test(name);
};

const isLabelValue = (value: string): boolean => value === '' || (value.length <= 63 && NAME.test(value));
