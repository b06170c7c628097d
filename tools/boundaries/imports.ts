/**
 * Finds the imports of a TypeScript file by pattern. TypeScript 7 has no JavaScript API to ask (ADR 0001), and the
 * formatter keeps every import statement at the start of a line, so a pattern is exact enough.
 */
import { lineAt } from './source-files.ts';

/** One import or re-export. `isTypeOnly` means that nothing of it is left when the program runs. */
export interface Import {
  readonly specifier: string;
  /** The names between the braces; empty when the whole module is taken. */
  readonly names: readonly string[];
  readonly isTypeOnly: boolean;
  readonly line: number;
}

const STATEMENT =
  /^(?:import|export)\b(?<typeOnly>\s+type\b)?(?<clause>[^'"`;=()]*?\bfrom)?\s*(?<quote>['"])(?<specifier>[^'"\n]+)\k<quote>/gm;
const EXPRESSION = /\bimport\s*\(\s*(?<quote>['"])(?<specifier>[^'"\n]+)\k<quote>/g;

/** All imports of a source text in order of appearance, `import()` included. */
export const importsOf = (text: string): Import[] =>
  [...text.matchAll(STATEMENT), ...text.matchAll(EXPRESSION)]
    .toSorted((a, b) => a.index - b.index)
    .map((match) => ({
      specifier: match.groups?.specifier ?? '',
      names: namesOf(match.groups?.clause ?? ''),
      isTypeOnly: match.groups?.typeOnly !== undefined,
      line: lineAt(text, match.index),
    }));

const namesOf = (clause: string): string[] =>
  /^\s*\{(?<list>[^}]*)\}\s*from$/
    .exec(clause)
    ?.groups?.list?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '') ?? [];
