/** The walks of docs/explanation/walks.md lead through files and names that exist. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs/explanation/walks.md'), 'utf8');

interface Hop {
  readonly walk: string;
  readonly file: string;
  readonly name: string;
}

const hops: readonly Hop[] = page.split(/^## /m).flatMap((section) => {
  const [walk = ''] = section.split('\n');
  return [...section.matchAll(/^\| `(?<file>[^`]+)` \| `(?<name>[^`]+)` \|/gm)].map(({ groups }) => ({
    walk,
    file: groups?.file ?? '',
    name: groups?.name ?? '',
  }));
});

test('every hop of a walk is a name in a file', () => {
  const lost = hops.filter(({ file, name }) => {
    const path = join(root, file);
    return !existsSync(path) || !new RegExp(`\\b${name}\\b`).test(readFileSync(path, 'utf8'));
  });
  assert.deepEqual(lost, []);
});

test('a policy takes no more than 30 hops, a lost node no more than 20', () => {
  const countOf = (start: string): number => hops.filter(({ walk }) => walk.startsWith(start)).length;
  const counts = [countOf('One policy'), countOf('One lost gateway node')];
  assert.ok(counts.every((count) => count > 10) && (counts[0] ?? 0) <= 30 && (counts[1] ?? 0) <= 20, counts.join());
});
