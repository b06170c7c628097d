/** Fields of a schema as rows of a table. */
import type { StructuralSchema } from '../../src/api/structural.ts';

/** One field as a row of a table. */
export interface FieldRow {
  /** Path below the table's root: `ippools.ipv4[]`, `nodeIP{}.ipv4`. */
  readonly path: string;
  readonly type: string;
  readonly default: string;
  readonly meaning: string;
  /** What must hold, one sentence part each. */
  readonly rules: readonly string[];
}

/** Returns one row per field below the node, parents before children. Items are rows only if they have fields themselves. */
export function fieldRows(node: StructuralSchema, prefix = ''): readonly FieldRow[] {
  const required = node.required ?? [];
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const path = `${prefix}${name}`;
    const rules = [...(required.includes(name) ? ['required'] : []), ...rulesOf(child), ...itemRules(child)];
    const row = { path, type: typeOf(child), default: defaultOf(child), meaning: child.description ?? '', rules };
    return [row, ...childRows(child, path)];
  });
}

function childRows(node: StructuralSchema, path: string): readonly FieldRow[] {
  if (isLabelSelector(node)) return [];
  if (node.items) return childRows(node.items, `${path}[]`);
  if (node.additionalProperties) return childRows(node.additionalProperties, `${path}{}`);
  return fieldRows(node, `${path}.`);
}

/** Label selectors are the same everywhere; their fields are not repeated. */
function isLabelSelector(node: StructuralSchema): boolean {
  return node.properties?.matchLabels !== undefined;
}

function typeOf(node: StructuralSchema): string {
  if (node['x-kubernetes-int-or-string']) return 'integer or string';
  if (isLabelSelector(node)) return 'label selector';
  if (node.items) return `list of ${typeOf(node.items)}`;
  if (node.additionalProperties) return `map of ${typeOf(node.additionalProperties)}`;
  return node.format === 'date-time' ? 'time' : (node.type ?? '');
}

function defaultOf(node: StructuralSchema): string {
  if (node.default === undefined) return '';
  const text = JSON.stringify(node.default);
  return text === '{}' ? '' : `\`${text}\``;
}

function rulesOf(node: StructuralSchema): readonly string[] {
  if (isLabelSelector(node)) return [];
  const bounds: readonly (readonly [string, number | undefined, string])[] = [
    ['at least', node.minimum, ''],
    ['at most', node.maximum, ''],
    ['at most', node.maxLength, ' characters'],
    ['at most', node.maxItems ?? node.maxProperties, ' entries'],
  ];
  return [
    ...(node.enum ? [`one of ${node.enum.map((value) => `\`"${value}"\``).join(', ')}`] : []),
    ...bounds.flatMap(([words, bound, unit]) => (bound === undefined ? [] : [`${words} ${bound}${unit}`])),
    ...(node['x-kubernetes-validations'] ?? []).map(({ message }) => message),
  ];
}

/** Rules about plain items of a list are told at the list. */
function itemRules(node: StructuralSchema): readonly string[] {
  if (!node.items || node.items.properties) return [];
  return (node.items['x-kubernetes-validations'] ?? []).map(({ message }) => message);
}
