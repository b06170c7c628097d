/** Prints everything in the tree that is against the rules of tools/boundaries, one line each. Exits 1 if there is any. */
import { join } from 'node:path';
import { importOffences } from './boundaries/layers.ts';
import { machineTextOffences } from './boundaries/machine-text.ts';
import { roomOffences } from './boundaries/rooms.ts';
import { type Offence, readSourceFiles, type SourceFile } from './boundaries/source-files.ts';
import {
  folderPageOffences,
  lengthOffences,
  purityOffences,
  typeNameOffences,
  workNoteOffences,
} from './boundaries/tree.ts';

const rules: readonly ((files: readonly SourceFile[]) => Offence[])[] = [
  importOffences,
  roomOffences,
  folderPageOffences,
  lengthOffences,
  workNoteOffences,
  purityOffences,
  typeNameOffences,
  machineTextOffences,
];

/** Every offence of the given files, in the order of the rules. */
export const offencesOf = (files: readonly SourceFile[]): Offence[] => rules.flatMap((rule) => rule(files));

if (import.meta.main) {
  const files = readSourceFiles(join(import.meta.dirname, '..'));
  const offences = offencesOf(files);
  for (const { path, line, sentence } of offences) console.log(`${path}:${line}: ${sentence}`);
  console.log(`${files.length} files, ${offences.length} offences`);
  process.exitCode = offences.length === 0 ? 0 : 1;
}
