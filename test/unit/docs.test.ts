/** What the pages of the tree say is there: links, files, metrics, reasons, make targets, and manifests that can be applied. */
import assert from 'node:assert/strict';
import { join, matchesGlob, posix } from 'node:path';
import { describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { errorCodes } from '../../src/api/error.ts';
import { isKindName, type KindDescription, kinds } from '../../src/api/kinds.ts';
import { reasons } from '../../src/api/reasons.ts';
import { readSourceFiles } from '../../tools/boundaries/source-files.ts';

const files = readSourceFiles(join(import.meta.dirname, '..', '..'));
const textByPath = new Map(files.map(({ path, text }) => [path, text]));
const folders = new Set(files.flatMap(({ path }) => foldersOf(path)));
const pages = files.filter(({ path }) => path.endsWith('.md'));
const userPages = pages.filter(({ path }) => path.startsWith('docs/') || !path.includes('/'));

function foldersOf(path: string): string[] {
  const folder = posix.dirname(path);
  return folder === '.' ? [] : [folder, ...foldersOf(folder)];
}

/** The blocks of code of a page, by what they are marked as; the rest is prose. */
const blocksOf = (text: string, mark: string): string[] =>
  [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, name, code = '']) => (name === mark ? [code] : []));
const proseOf = (text: string): string => text.replace(/^```.*?^```/gms, '');

/** Where the links of a page lead to in the tree; those to the rest of the world are not our business. */
const linksOf = (path: string, text: string) =>
  [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [target = '', anchor] = link.split('#');
    return [{ link, target: target === '' ? path : posix.join(posix.dirname(path), target), anchor }];
  });

/** Headings as links name them (the rules of GitHub). */
const anchorsOf = (text: string): string[] =>
  [...proseOf(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );

const exists = (path: string): boolean => textByPath.has(path) || folders.has(path.replace(/\/$/, ''));

test('links lead somewhere, and to a heading that is there', () => {
  const dead = pages.flatMap(({ path, text }) =>
    linksOf(path, text).flatMap(({ link, target, anchor }) => {
      const isThere =
        exists(target) && (anchor === undefined || anchorsOf(textByPath.get(target) ?? '').includes(anchor));
      return isThere ? [] : [`${path}: ${link}`];
    }),
  );
  assert.deepEqual(dead, []);
});

test('every page of docs can be reached from docs/README.md', () => {
  const reached = new Set(['docs/README.md']);
  for (const path of reached) {
    for (const { target } of linksOf(path, textByPath.get(path) ?? '')) {
      const page = folders.has(target) ? posix.join(target, 'README.md') : target;
      if (textByPath.has(page) && page.endsWith('.md')) reached.add(page);
    }
  }
  const lost = pages.map(({ path }) => path).filter((path) => path.startsWith('docs/') && !reached.has(path));
  assert.deepEqual(lost, []);
});

test('files that pages name are there', () => {
  const top = /^(?:src|lab|test|tools|bench|docs|charts|bin)\/[\w./*-]+$/;
  const short = /^[\w./-]+\.(?:ts|go|sh)$/;
  const paths = [...textByPath.keys(), ...folders];
  const missing = pages.flatMap(({ path, text }) =>
    [...proseOf(text).matchAll(/`([^`\n]+)`/g)].flatMap(([, name = '']) => {
      const isThere = top.test(name)
        ? exists(name) || paths.some((one) => matchesGlob(one, name.replace(/\/$/, '')))
        : !short.test(name) ||
          paths.some((one) => `/${one}`.endsWith(posix.join('/', name.replace(/^(\.\.?\/)+/, ''))));
      return isThere ? [] : [`${path}: ${name}`];
    }),
  );
  assert.deepEqual(missing, []);
});

describe('names', () => {
  const sources = files.filter(({ path }) => /^(?:src|charts)\//.test(path) && !path.endsWith('.test.ts'));
  const outsideApi = sources.filter(({ path }) => !path.startsWith('src/api/')).map(({ text }) => text);

  test('metrics that pages name are made', () => {
    const all = sources.map(({ text }) => text).join('\n');
    const unknown = userPages.flatMap(({ path, text }) =>
      [...text.matchAll(/`(sallyport_[a-z_]+)/g)].flatMap(([, name = '']) =>
        all.includes(name) ? [] : [`${path}: ${name}`],
      ),
    );
    assert.deepEqual(unknown, []);
  });

  test('every reason and every error code is used by somebody', () => {
    const isUsed = (name: string): boolean => outsideApi.some((text) => new RegExp(`\\b${name}\\b`).test(text));
    const unused = [...Object.keys(reasons), ...Object.keys(errorCodes)].filter((name) => !isUsed(name));
    assert.deepEqual(unused, []);
  });

  test('make has the targets that pages name', () => {
    const targets = [...(textByPath.get('Makefile') ?? '').matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name);
    const unknown = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/(?:^|`)(?:[A-Z_]+=\S+ )*make ([a-z0-9-]+)/gm)].flatMap(([, name]) =>
        targets.includes(name) ? [] : [`${path}: make ${name}`],
      ),
    );
    assert.deepEqual(unknown, []);
  });
});

describe('YAML', () => {
  const blocks = userPages.flatMap(({ path, text }) => blocksOf(text, 'yaml').map((code) => ({ path, code })));
  const Manifest = z.looseObject({ apiVersion: z.string(), kind: z.string() });
  const values: unknown = parse(textByPath.get('charts/sallyport/values.yaml') ?? '');

  test('objects of our kinds are as their schemas want them', () => {
    const manifests = blocks.flatMap(({ path, code }) =>
      parseAllDocuments(code).flatMap((document) => {
        const { success, data } = Manifest.safeParse(document.toJS());
        return success ? [{ path, data }] : [];
      }),
    );
    const ours = manifests.filter(({ data }) => isKindName(data.kind));
    assert.ok(ours.length > 10, `${ours.length} objects`);
    const refused = ours.flatMap(({ path, data }) => {
      if (!isKindName(data.kind)) return [];
      const { schema }: KindDescription = kinds[data.kind];
      const result = schema.safeParse(data);
      return result.success ? [] : [`${path}: ${String(result.error)}`];
    });
    assert.deepEqual(refused, []);
  });

  test('values of the chart have keys that the chart has', () => {
    const snippets = blocks
      .map(({ path, code }) => ({
        path,
        value: z.record(z.string(), z.unknown()).safeParse(parseAllDocuments(code)[0]?.toJS()),
      }))
      .flatMap(({ path, value }) => (value.success ? [{ path, value: value.data }] : []))
      .filter(
        ({ value }) => !('apiVersion' in value) && ('config' in value || 'operator' in value || 'agent' in value),
      );
    assert.ok(snippets.length > 2, `${snippets.length} snippets`);
    assert.deepEqual(
      snippets.flatMap(({ path, value }) => unknownKeys(value, values).map((key) => `${path}: ${key}`)),
      [],
    );
  });
});

const Branch = z.record(z.string(), z.unknown());

/** Keys of `value` that `known` has not; an empty object in `known` takes everything. */
function unknownKeys(value: unknown, known: unknown, prefix = ''): string[] {
  const [given, allowed] = [Branch.safeParse(value), Branch.safeParse(known)];
  if (!given.success || !allowed.success || Object.keys(allowed.data).length === 0) return [];
  return Object.entries(given.data).flatMap(([key, child]) =>
    key in allowed.data ? unknownKeys(child, allowed.data[key], `${prefix}${key}.`) : [prefix + key],
  );
}
