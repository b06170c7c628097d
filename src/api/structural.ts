/**
 * Lowering: from a zod schema to the structural schema that a CRD needs. What Kubernetes has no word for is refused
 * with the path of the field, here and not by the API server of a user.
 */
import { z } from 'zod';
import { type ServerRule, validationsKey } from './rule.ts';

/** One node of a structural schema: the part of OpenAPI v3 that the API server takes in a CRD. */
export interface StructuralSchema {
  description?: string;
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  format?: string;
  enum?: string[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  required?: string[];
  properties?: Record<string, StructuralSchema>;
  items?: StructuralSchema;
  additionalProperties?: StructuralSchema;
  'x-kubernetes-int-or-string'?: true;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-map-type'?: 'atomic' | 'granular';
  'x-kubernetes-validations'?: ServerRule[];
}

/** The keys a node may have, in the order in which they are written. */
const keys: readonly (keyof StructuralSchema)[] = [
  'description',
  'type',
  'x-kubernetes-int-or-string',
  'format',
  'enum',
  'default',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'maxProperties',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'required',
  'properties',
  'items',
  'additionalProperties',
  validationsKey,
];

/** Lowers a schema; throws an Error naming the field that has no structural form or no bound under a rule. */
export function lower(schema: z.ZodType, name: string): StructuralSchema {
  const raw = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    unrepresentable: 'throw',
    override: ({ zodSchema, jsonSchema }) => {
      if (isIntOrString(zodSchema)) {
        delete jsonSchema.anyOf;
        jsonSchema['x-kubernetes-int-or-string'] = true;
      }
    },
  });
  const { $schema: _, ...root } = raw;
  const lowered = lowerNode(root, name);
  refuseUnbounded(lowered, name, false);
  return lowered;
}

function isIntOrString(schema: z.core.$ZodType): boolean {
  if (!(schema instanceof z.ZodUnion)) return false;
  const [first, second, ...more] = schema.options;
  return first instanceof z.ZodNumber && second instanceof z.ZodString && more.length === 0;
}

function lowerNode(raw: object, path: string): StructuralSchema {
  // A parse boundary: zod types its JSON Schema loosely, and every key is checked below.
  const node: Record<string, unknown> = { ...raw };
  // Kubernetes prunes unknown fields instead of refusing them, and cannot say anything about the keys of a map.
  if (node.additionalProperties === false) delete node.additionalProperties;
  delete node.propertyNames;
  // zod writes the limits of safe integers, which no user asked for.
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  for (const key of Object.keys(node)) if (node[key] === undefined) delete node[key];

  const unknown = Object.keys(node).find((key) => !keys.some((known) => known === key));
  if (unknown) throw new Error(`${path}: "${unknown}" has no place in a structural schema`);
  if (node.type === undefined && !node['x-kubernetes-int-or-string']) throw new Error(`${path}: the type is missing`);

  const children = node.properties as Record<string, object> | undefined;
  if (children) {
    node.properties = Object.fromEntries(
      Object.entries(children).map(([key, child]) => [key, lowerNode(child, `${path}.${key}`)]),
    );
  }
  if (node.items) node.items = lowerNode(node.items, `${path}[]`);
  if (node.additionalProperties) node.additionalProperties = lowerNode(node.additionalProperties, `${path}{}`);
  return Object.fromEntries(keys.filter((key) => node[key] !== undefined).map((key) => [key, node[key]]));
}

/**
 * The API server multiplies the cost of a rule with the largest size of what it looks at, so everything under a rule
 * needs a size. A rule on a whole object may read its metadata only, whose sizes Kubernetes itself bounds.
 */
function refuseUnbounded(node: StructuralSchema, path: string, isUnderRule: boolean): void {
  const rules = node[validationsKey] ?? [];
  const isRoot = node.properties?.metadata !== undefined && node.properties.apiVersion !== undefined;
  const strayRule = isRoot && rules.find(({ rule }) => /\bself\b(?!\.metadata\.)/i.test(rule));
  if (strayRule) throw new Error(`${path}: a rule of the whole object may read self.metadata only: ${strayRule.rule}`);
  const isJudged = isUnderRule || (rules.length > 0 && !isRoot);
  if (isJudged) {
    if (node.type === 'string' && node.maxLength === undefined && node.enum === undefined && node.format === undefined)
      throw new Error(`${path}: a string under a rule needs a maximum length`);
    if (node.type === 'array' && node.maxItems === undefined)
      throw new Error(`${path}: a list under a rule needs a maximum number of items`);
    if (node.additionalProperties && node.maxProperties === undefined)
      throw new Error(`${path}: a map under a rule needs a maximum number of entries`);
  }
  for (const [key, child] of Object.entries(node.properties ?? {})) refuseUnbounded(child, `${path}.${key}`, isJudged);
  if (node.items) refuseUnbounded(node.items, `${path}[]`, isJudged);
  if (node.additionalProperties) refuseUnbounded(node.additionalProperties, `${path}{}`, isJudged);
}
