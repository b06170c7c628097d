/** The CRDs as YAML files for the chart. */
import { join } from 'node:path';
import { stringify } from 'yaml';
import { crdOf } from '../../src/api/crd.ts';
import { type KindName, kinds } from '../../src/api/kinds.ts';

/** Where the chart finds its CRDs. */
export const crdFolder = join('charts', 'sallyport', 'files', 'crds');

/** Every generated file says so in its first line. */
export const madeMark = 'Made from src/api by tools/generate.ts. Do not edit.';

/** Every kind, in the order of the table. */
export const kindNames = Object.keys(kinds).filter((name): name is KindName => Object.hasOwn(kinds, name));

/** Returns path and text of one file per kind. */
export function crdOutputs(): readonly (readonly [string, string])[] {
  return kindNames.map((kind) => {
    const { group, plural } = kinds[kind];
    // Lines are not folded: CEL texts hold runs of spaces that folding could lose in another parser.
    const text = stringify(crdOf(kind), { lineWidth: 0 });
    return [join(crdFolder, `${group}_${plural}.yaml`), `# ${madeMark}\n${text}`];
  });
}
