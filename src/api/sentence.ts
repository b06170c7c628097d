/** Sentences for people, made from what zod found wrong: each names the key, the value and what is allowed. */
import type { z } from 'zod';
import type { StructuralSchema } from './structural.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** One thing that is wrong, where, and in words. */
export interface Fault {
  readonly path: Path;
  readonly sentence: string;
}

/**
 * Returns the faults of an input in the order in which zod found them. `schema` is the lowered form of the zod schema
 * that refused `input`: it knows what is allowed at each place.
 */
export function faultsOf(error: z.ZodError, schema: StructuralSchema, input: unknown): readonly Fault[] {
  return error.issues.flatMap((issue) => faultsOfIssue(issue, schema, input));
}

function faultsOfIssue(issue: Issue, schema: StructuralSchema, input: unknown): readonly Fault[] {
  const { path } = issue;
  const node = nodeAt(schema, path);
  if (issue.code !== 'unrecognized_keys') return [{ path, sentence: sentenceOf(issue, node, valueAt(input, path)) }];
  const known = Object.keys(node?.properties ?? {}).join(', ');
  return issue.keys.map((key) => {
    const keyPath = [...path, key];
    return { path: keyPath, sentence: `${pathText(keyPath)} is not a known key: allowed here are ${known}` };
  });
}

function sentenceOf(issue: Issue, node: StructuralSchema | undefined, value: unknown): string {
  const at = pathText(issue.path);
  const fact = value === undefined ? `${at} is missing` : `${at} is ${valueText(value)}`;
  if (issue.code !== 'custom') return `${fact}: allowed is ${allowed(node)}`;
  // A rule about several fields names them itself; the object they are in would only hide it.
  if (typeof value !== 'object' || value === null) return `${fact}: ${issue.message}`;
  return issue.path.length > 0 ? `${at}: ${issue.message}` : issue.message;
}

/** Says in words what a place in a schema takes. */
function allowed(node: StructuralSchema | undefined): string {
  if (!node) return 'something else';
  if (node['x-kubernetes-int-or-string']) return 'a whole number or a text';
  if (node.enum) return `one of ${node.enum.map(valueText).join(', ')}`;
  switch (node.type) {
    case 'integer':
    case 'number':
      return `a ${node.type === 'integer' ? 'whole ' : ''}number${between(node.minimum, node.maximum)}`;
    case 'boolean':
      return 'true or false';
    case 'string':
      return `a text${amount(node.minLength, node.maxLength, 'characters')}`;
    case 'array':
      return `a list${amount(node.minItems, node.maxItems, 'entries')}`;
    default:
      return node.properties ? `a mapping with the keys ${Object.keys(node.properties).join(', ')}` : 'a mapping';
  }
}

function between(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

function amount(minimum: number | undefined, maximum: number | undefined, unit: string): string {
  const bounds = between(minimum, maximum);
  return bounds === '' ? '' : `${bounds.replace(' from ', ' of ')} ${unit}`;
}

function nodeAt(schema: StructuralSchema, path: Path): StructuralSchema | undefined {
  let node: StructuralSchema | undefined = schema;
  for (const key of path) {
    node = typeof key === 'number' ? node?.items : (node?.properties?.[String(key)] ?? node?.additionalProperties);
  }
  return node;
}

function valueAt(input: unknown, path: Path): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

function pathText(path: Path): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return text === '' ? 'the whole' : text.replace(/^\./, '');
}

/** At most this much of a value is repeated in a sentence. */
const longestValue = 80;

function valueText(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > longestValue ? `${text.slice(0, longestValue)}...` : text;
}
