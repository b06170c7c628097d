/** From the text of a YAML file to a checked configuration, or to sentences that say what is wrong and on which line. */
import { LineCounter, parseAllDocuments } from 'yaml';
import type { z } from 'zod';
import { EgressError } from '../../api/error.ts';
import { faultsOf } from '../../api/sentence.ts';
import { lower } from '../../api/structural.ts';
import { messageOf } from '../process/bug.ts';
import { lineOf } from './locate.ts';

/** One thing wrong with a file, in words for the person who wrote it. `line` counts from 1. */
export interface ConfigProblem {
  readonly line: number;
  /** Names the key, its value and what is allowed. */
  readonly sentence: string;
}

/** A checked configuration, or why there is none. Problems are in the order of their lines. */
export type ParsedConfig<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** Parses and checks. An empty file is an empty map, so that a schema of defaults accepts it. */
export function parseConfig<S extends z.ZodType>(text: string, schema: S): ParsedConfig<z.output<S>> {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false });
  // The library gives an empty array, with extra properties, for a text without any document.
  const [document, second] = 'empty' in documents ? [] : documents;
  if (second !== undefined) return refused(lines, second.range[0], 'only one YAML document is allowed');
  const [error] = document?.errors ?? [];
  if (error !== undefined) return refused(lines, error.pos[0], `not YAML: ${error.message}`);
  let value: unknown;
  try {
    value = document?.toJS() ?? {};
  } catch (error) {
    // Aliases are resolved only here: an unknown one, or so many that the document would unfold without end.
    return refused(lines, 0, `not YAML: ${messageOf(error)}`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const problems = faultsOf(parsed.error, lower(schema, 'configuration'), value).map(({ path, sentence }) => ({
    line: document === undefined ? 1 : lineOf(document, lines, path),
    sentence,
  }));
  return { ok: false, problems: problems.sort((a, b) => a.line - b.line) };
}

/** Returns CONFIG_INVALID whose message is one sentence about the first problem and whose data hold all of them. */
export function configError(path: string, problems: readonly ConfigProblem[]): EgressError {
  const [first] = problems;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  const message = `${path}:${first?.line ?? 1}: ${first?.sentence ?? 'it cannot be used'}${more}`;
  return new EgressError('CONFIG_INVALID', message, { data: { path, problems } });
}

function refused(lines: LineCounter, offset: number, sentence: string) {
  return { ok: false as const, problems: [{ line: lines.linePos(offset).line, sentence }] };
}
