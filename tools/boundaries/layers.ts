/** Who may import what. The table is the rule; a folder of src without a row is an offence. */
import { posix } from 'node:path';
import { type Import, importsOf } from './imports.ts';
import type { Offence, SourceFile } from './source-files.ts';

interface Layer {
  /** Other layers that it may import; its own files are always allowed. */
  readonly layers: readonly string[];
  /** npm packages that it may import. Adding one needs a line in docs/adr/0008-dependencies.md. */
  readonly packages: readonly string[];
  /** npm packages of which it may import types only, so that nothing of them is shipped. */
  readonly types?: readonly string[];
  /** A pure layer may use only platform modules that do no input or output and know no time. */
  readonly isPure?: true;
}

const SHARED = ['src/api', 'src/core', 'src/runtime'];

/** The layers of src. Files of lab, test, tools and bench may import anything. */
export const layers: Readonly<Record<string, Layer>> = {
  'src/api': { layers: [], packages: ['zod'], isPure: true },
  'src/core': { layers: ['src/api'], packages: [], isPure: true },
  'src/runtime': {
    layers: ['src/api'],
    packages: ['@peculiar/x509', 'pino', 'prom-client', 'reflect-metadata', 'undici', 'yaml', 'zod'],
    types: ['@kubernetes/client-node'],
  },
  'src/dataplane': { layers: ['src/api', 'src/core'], packages: ['koffi'] },
  'src/controller': { layers: SHARED, packages: [] },
  'src/operator': { layers: SHARED, packages: [] },
  'src/proxy': { layers: SHARED, packages: ['zod'] },
  'src/console': { layers: SHARED, packages: [] },
  'src/cli': { layers: SHARED, packages: ['commander', 'zod'] },
  'src/removal': { layers: ['src/runtime'], packages: [] },
  'src/agent': { layers: [...SHARED, 'src/dataplane'], packages: [] },
};

/** What a pure layer may take from the platform: names without input, output, time or randomness; '*' means all of them. */
const PURE_NAMES: Readonly<Record<string, readonly string[]>> = {
  'node:assert': ['*'],
  'node:assert/strict': ['*'],
  'node:util': ['*'],
  'node:net': ['isIP', 'isIPv4', 'isIPv6'],
};
const OUTSIDE = ['lab', 'test', 'tools', 'bench'];

/** Every import in src that the table does not allow. */
export const importOffences = (files: readonly SourceFile[]): Offence[] =>
  files
    .filter(({ path }) => path.startsWith('src/') && path.endsWith('.ts'))
    .flatMap((file) => {
      const name = layerNameOf(file.path);
      // src/main.ts chooses the program by its first argument, so it is the one file that may name them all.
      if (name === 'src') return judgeEach(file, (edge) => outsideOffence(file.path, edge));
      const layer = layers[name];
      if (layer === undefined) {
        return [
          {
            path: file.path,
            line: 1,
            sentence: `${name} is not a layer yet; give it a row in tools/boundaries/layers.ts`,
          },
        ];
      }
      return judgeEach(file, (edge) => judge(file.path, name, layer, edge));
    });

const judgeEach = (file: SourceFile, sentenceFor: (edge: Import) => string | undefined): Offence[] =>
  importsOf(file.text).flatMap((edge) => {
    const sentence = sentenceFor(edge);
    return sentence === undefined ? [] : [{ path: file.path, line: edge.line, sentence }];
  });

const judge = (path: string, name: string, layer: Layer, edge: Import): string | undefined => {
  if (edge.specifier.startsWith('.')) {
    const target = layerNameOf(targetOf(path, edge));
    if (isShipped(path) && !isShipped(targetOf(path, edge))) {
      return `${path} is shipped and may not import what is for tests (${edge.specifier})`;
    }
    if (target === name || layer.layers.includes(target)) return undefined;
    return (
      outsideOffence(path, edge) ?? `${name} may not import ${target} (${edge.specifier}); ${allowed(layer.layers)}`
    );
  }
  // A test may use the platform and the development packages; it runs nowhere but here.
  if (path.endsWith('.test.ts')) return undefined;
  if (edge.specifier.startsWith('node:')) {
    if (!layer.isPure || isPureImport(edge)) return undefined;
    return `${name} is pure and may not import ${edge.specifier}; take what you need as a parameter, or move the code to another layer`;
  }
  const packageName = packageOf(edge.specifier);
  if (layer.packages.includes(packageName)) return undefined;
  if (edge.isTypeOnly && layer.types?.includes(packageName)) return undefined;
  return `${name} may not import the package ${packageName}; ${allowed(layer.packages)}`;
};

const isPureImport = ({ specifier, names }: Import): boolean => {
  const pure = PURE_NAMES[specifier] ?? [];
  return pure.includes('*') || (names.length > 0 && names.every((name) => pure.includes(name)));
};

const outsideOffence = (path: string, edge: Import): string | undefined => {
  if (!edge.specifier.startsWith('.')) return undefined;
  const [top = ''] = targetOf(path, edge).split('/');
  return OUTSIDE.includes(top)
    ? `src may not import ${top} (${edge.specifier}); what both need belongs in src`
    : undefined;
};

/** False for tests and for the fakes in folders named testing. */
const isShipped = (path: string): boolean => !path.endsWith('.test.ts') && !path.split('/').includes('testing');

const targetOf = (path: string, edge: Import): string => posix.join(posix.dirname(path), edge.specifier);

/** The first two parts of a path: src/core for src/core/ip/pool.ts; the folder alone for a file directly in it. */
const layerNameOf = (path: string): string => posix.dirname(path).split('/').slice(0, 2).join('/');

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

const allowed = (names: readonly string[]): string =>
  names.length === 0 ? 'it may import none' : `it may import ${names.join(', ')}`;
