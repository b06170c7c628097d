/**
 * Writes everything that is made from src/api: the CRDs of the chart and the reference pages.
 * With --check it writes nothing and fails if a file differs from what it would write.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { crdFolder, crdOutputs, madeMark } from './generate/crds.ts';
import { exampleFolder, referenceFolder, referenceOutputs } from './generate/reference.ts';

const command = 'npm run generate';

/** Returns every generated file by its path in the repository. `readExample` gives the text of a file of docs/examples. */
export function outputs(readExample: (name: string) => string): ReadonlyMap<string, string> {
  return new Map([...crdOutputs(), ...referenceOutputs(readExample)]);
}

/** Returns one line per file that is missing, stale or no longer made; nothing when all is well. */
export function staleFiles(root: string, wanted: ReadonlyMap<string, string>): readonly string[] {
  const stale = [...wanted].flatMap(([path, text]) => {
    const file = join(root, path);
    if (!existsSync(file)) return [`${path} is missing`];
    return readFileSync(file, 'utf8') === text ? [] : [`${path} is stale`];
  });
  return [...stale, ...leftOver(root, wanted).map((path) => `${path} is not made any more`)];
}

/** Writes every file and removes those that are not made any more. May be called twice. */
export function writeOutputs(root: string, wanted: ReadonlyMap<string, string>): void {
  for (const path of leftOver(root, wanted)) rmSync(join(root, path));
  for (const [path, text] of wanted) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** Files that an earlier run made and this one would not. Files written by hand in the same folders are left alone. */
function leftOver(root: string, wanted: ReadonlyMap<string, string>): readonly string[] {
  return [crdFolder, referenceFolder]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)))
    .filter((path) => !wanted.has(path) && readFileSync(join(root, path), 'utf8').includes(madeMark));
}

function main(): number {
  let isCheck: boolean;
  try {
    isCheck = parseArgs({ options: { check: { type: 'boolean', default: false } } }).values.check;
  } catch (error) {
    console.error(`generate: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }
  const root = join(import.meta.dirname, '..');
  const wanted = outputs((name) => readFileSync(join(root, exampleFolder, name), 'utf8'));
  if (isCheck) {
    const stale = staleFiles(root, wanted);
    for (const line of stale) console.error(line);
    if (stale.length > 0) console.error(`Run "${command}" and commit the result.`);
    return stale.length > 0 ? 1 : 0;
  }
  writeOutputs(root, wanted);
  console.log(`Wrote ${wanted.size} files.`);
  return 0;
}

if (import.meta.main) process.exitCode = main();
