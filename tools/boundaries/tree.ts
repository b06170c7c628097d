/** Rules about single files and folders. */
import { posix } from 'node:path';
import { lineAt, type Offence, type SourceFile } from './source-files.ts';

const LINE_LIMIT = 400;
const isSource = ({ path }: SourceFile): boolean => /\.(ts|go|sh)$/.test(path);
const isIn = (path: string, ...folders: string[]): boolean => folders.some((folder) => path.startsWith(`${folder}/`));

/** Every folder that holds TypeScript says what it is: README.md, or index.ts with a header comment. */
export const folderPageOffences = (files: readonly SourceFile[]): Offence[] => {
  const fileByPath = new Map(files.map((file) => [file.path, file]));
  const folders = new Set(
    files.filter(({ path }) => path.endsWith('.ts') && path.includes('/')).map(({ path }) => posix.dirname(path)),
  );
  return [...folders]
    .filter((folder) => {
      const header = fileByPath.get(`${folder}/index.ts`)?.text.startsWith('/**') ?? false;
      return !header && !fileByPath.has(`${folder}/README.md`);
    })
    .map((folder) => ({
      path: folder,
      line: 1,
      sentence:
        'has no page; write a README.md or an index.ts whose header says what the folder is and what to read first',
    }));
};

/** No source file is longer than 400 lines; there are no exceptions. */
export const lengthOffences = (files: readonly SourceFile[]): Offence[] =>
  files.filter(isSource).flatMap(({ path, text }) => {
    const lines = text.replace(/\n$/, '').split('\n').length;
    return lines > LINE_LIMIT
      ? [
          {
            path,
            line: LINE_LIMIT + 1,
            sentence: `has ${lines} lines where ${LINE_LIMIT} are allowed; split it by noun`,
          },
        ]
      : [];
  });

// Written so that the pattern does not find itself.
const WORK_NOTE = /\b(?:TO[D]O|FIX[M]E|X{3})\b(?!\(#\d+\): )/g;

/** A note about work to do names the issue that will do it, or it will never be done. */
export const workNoteOffences = (files: readonly SourceFile[]): Offence[] =>
  files.filter(isSource).flatMap(({ path, text }) =>
    [...text.matchAll(WORK_NOTE)].map((match) => ({
      path,
      line: lineAt(text, match.index),
      sentence: `${match[0]} without an issue; write ${match[0]}(#12): what and when, or do it`,
    })),
  );

// Imports are judged in layers.ts; these are the ways to reach time, chance and the world without one.
const IMPURE_GLOBAL =
  /\b(?:Date\.now|Math\.random|performance\.now|new Date\(\)|process\.\w+|set(?:Timeout|Interval|Immediate)\(|fetch\(|console\.\w+\(|crypto\.\w+\()/g;

/** Code of src/core and src/api uses no global that reads the clock, chance, the process or the network. */
export const purityOffences = (files: readonly SourceFile[]): Offence[] =>
  files
    .filter(({ path }) => isIn(path, 'src/core', 'src/api') && path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(IMPURE_GLOBAL)].map((match) => ({
        path,
        line: lineAt(text, match.index),
        sentence: `${match[0]} in a pure layer; take the value as a parameter`,
      })),
    );

const TYPE_DECLARATION = /^(?:export )?(?:declare )?(?:interface|type|class) (?<name>[A-Z]\w*)/gm;

/** Every type name of shipped code is declared once: a reader who meets it knows which one is meant. */
export const typeNameOffences = (files: readonly SourceFile[]): Offence[] => {
  const declarations = files
    .filter(({ path }) => isIn(path, 'src') && /^(?!.*(\.test\.ts|\/testing\/)).*\.ts$/.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(TYPE_DECLARATION)].map(({ index, groups }) => ({
        name: groups?.name ?? '',
        path,
        line: lineAt(text, index),
      })),
    );
  return [...Map.groupBy(declarations, ({ name }) => name)].flatMap(([name, all]) => {
    // A class and an interface of one name in one file are one type.
    const [first, ...others] = all.filter(({ path }, place) => all.findIndex((one) => one.path === path) === place);
    return others.map(({ path, line }) => ({
      path,
      line,
      sentence: `the type ${name} is declared in ${first?.path} too; give one of them a name of its own`,
    }));
  });
};
