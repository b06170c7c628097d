/** Which objects a LIST or WATCH covers: namespace, label selector and field selector, as far as tests use them. */
import type { StoredObject } from './object-store.ts';

/** True when an object is covered. */
export type Filter = (object: StoredObject) => boolean;

/** Makes the filter of a request. Selectors are lists of `a=b`, `a==b`, `a!=b` and, for labels, `a` and `!a`. */
export function filterOf(namespace: string | undefined, query: URLSearchParams): Filter {
  const labels = termsOf(query.get('labelSelector'));
  const fields = termsOf(query.get('fieldSelector'));
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    labels.every((term) => holds(term, object.metadata.labels?.[term.name])) &&
    fields.every((term) => holds(term, fieldOf(object, term.name)));
}

interface Term {
  readonly name: string;
  readonly operator: '=' | '!=' | 'exists' | 'absent';
  readonly value: string;
}

function termsOf(selector: string | null): Term[] {
  return (selector ?? '')
    .split(',')
    .filter((text) => text !== '')
    .map((text) => {
      const match = /^(!?)([^=!]+?)(?:(!=|==?)(.*))?$/.exec(text);
      const [, negation = '', name = text, sign, value = ''] = match ?? [];
      if (sign === undefined) return { name, operator: negation === '' ? 'exists' : 'absent', value };
      return { name, operator: sign === '!=' ? '!=' : '=', value };
    });
}

function holds(term: Term, actual: string | undefined): boolean {
  switch (term.operator) {
    case '=':
      return actual === term.value;
    case '!=':
      return actual !== term.value;
    case 'exists':
      return actual !== undefined;
    case 'absent':
      return actual === undefined;
  }
}

function fieldOf(object: StoredObject, path: string): string {
  const value = path.split('.').reduce<unknown>((part, name) => {
    return typeof part === 'object' && part !== null ? Reflect.get(part, name) : undefined;
  }, object);
  return value === undefined ? '' : String(value);
}
