/** Reads the tree: every text file that .gitignore does not name, with its path from the root. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';

/** A text file. `path` is relative to the root and uses forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Something that is against a rule; `line` counts from 1. */
export interface Offence {
  readonly path: string;
  readonly line: number;
  readonly sentence: string;
}

/** All text files below `root`, sorted by path. Throws if .gitignore holds a pattern that it does not understand. */
export const readSourceFiles = (root: string): SourceFile[] => {
  const isIgnored = ignoreRule(readGitignore(root));
  const found: SourceFile[] = [];
  const visit = (folder: string): void => {
    for (const item of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? item.name : `${folder}/${item.name}`;
      if (item.name === '.git' || isIgnored(path)) continue;
      if (item.isDirectory()) visit(path);
      else if (item.isFile()) found.push(...asText(root, path));
    }
  };
  visit('');
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
};

/** The line, counted from 1, that holds the character at `offset`. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

const asText = (root: string, path: string): SourceFile[] => {
  const bytes = readFileSync(join(root, path));
  return bytes.includes(0) ? [] : [{ path, text: bytes.toString('utf8') }];
};

const readGitignore = (root: string): string => {
  try {
    return readFileSync(join(root, '.gitignore'), 'utf8');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return '';
    throw cause;
  }
};

/** The simple part of gitignore: a pattern with a slash inside is tied to the root, any other matches at every depth. */
const ignoreRule = (gitignore: string): ((path: string) => boolean) => {
  const lines = gitignore.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const negated = lines.find((line) => line.startsWith('!'));
  if (negated !== undefined)
    throw new Error(`.gitignore: ${negated} is a kind of pattern that tools/boundaries does not know`);
  const globs = lines.map((line) => {
    const pattern = line.replace(/\/$/, '');
    return pattern.includes('/') ? pattern.replace(/^\//, '') : `**/${pattern}`;
  });
  return (path) => globs.some((glob) => matchesGlob(path, glob));
};
