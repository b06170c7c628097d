/** CustomResourceDefinitions, made from the table of kinds. */
import { type KindDescription, type KindName, kinds } from './kinds.ts';
import { lower, type StructuralSchema } from './structural.ts';

/** The category that lists objects of every kind: `kubectl get sallyport`. */
export const allKindsCategory = 'sallyport';

/** Returns the CRD of a kind as plain data, the same every time. */
export function crdOf(kind: KindName) {
  const description: KindDescription = kinds[kind];
  const { group, version, plural, scope, shortNames, category, columns } = description;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
        categories: [category, allKindsCategory],
      },
      scope,
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(columns.length > 0 && { additionalPrinterColumns: columns.map((column) => ({ ...column })) }),
          schema: { openAPIV3Schema: schemaOf(kind) },
          subresources: { status: {} },
        },
      ],
    },
  };
}

/** Returns the structural schema of a kind; metadata is left to Kubernetes, which describes and checks it itself. */
export function schemaOf(kind: KindName): StructuralSchema {
  const root = lower(kinds[kind].schema, kind);
  const { required = [], properties = {}, ...rest } = root;
  return {
    ...rest,
    required: required.filter((key) => key !== 'apiVersion' && key !== 'kind'),
    properties: {
      ...properties,
      apiVersion: {
        description: `The version of this schema: ${kinds[kind].group}/${kinds[kind].version}.`,
        type: 'string',
      },
      kind: { description: `The kind of the object: ${kind}.`, type: 'string' },
      // The API server allows no description here: it has its own.
      metadata: { type: 'object' },
    },
  };
}
