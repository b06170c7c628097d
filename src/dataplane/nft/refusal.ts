/** Why nft did not do what it was asked: one sentence, the reason for the report, and the piece of the script it means. */
import { EgressError } from '../../api/error.ts';
import type { Reason } from '../../api/reasons.ts';
import type { ProgramResult } from '../program.ts';

/** `data` of an NFT_REFUSED error. */
export interface RefusalData extends Record<string, unknown> {
  readonly reason: Extract<Reason, 'NftRefused' | 'NftMissing' | 'CapabilityMissing'>;
  /** The container and the element that the kernel would not take, if nft says so. */
  readonly container: string | undefined;
  readonly element: string | undefined;
}

/** The error for a call that failed. `script` is what went to standard input. */
export const refusalOf = (attempt: string, ended: ProgramResult, script = ''): EgressError => {
  const [place, words] = firstError(ended);
  const piece = place === undefined ? undefined : pieceAt(script, place);
  const data: RefusalData = { reason: reasonOf(ended), container: piece?.container, element: piece?.element };
  const about = piece === undefined ? '' : ` (${piece.container} ${piece.element})`;
  return new EgressError('NFT_REFUSED', `${attempt}: ${words}${about}`, { data });
};

/** True when something is not there, or is there already: the words of ENOENT and EEXIST. */
export const isStale = ({ stderr }: ProgramResult): boolean => /No such file or directory|File exists/.test(stderr);

interface ScriptSpan {
  readonly line: number;
  readonly from: number;
  readonly to: number;
}

/** nft prints `/dev/stdin:LINE:FROM-TO: Error: words`, then the line, which may be megabytes. */
const firstError = ({ code, stderr }: ProgramResult): readonly [ScriptSpan | undefined, string] => {
  const found = /^\S*:(\d+):(\d+)-(\d+): Error: (.*)$/m.exec(stderr);
  if (found !== null) {
    const [, line, from, to, words = ''] = found;
    return [{ line: Number(line), from: Number(from), to: Number(to) }, words];
  }
  const [first = ''] = stderr.trim().split('\n');
  return [undefined, first.slice(0, 200) || `nft ended with ${code}`];
};

const pieceAt = (
  script: string,
  { line, from, to }: ScriptSpan,
): { readonly container: string; readonly element: string } | undefined => {
  const text = script.split('\n')[line - 1] ?? '';
  const container = /^(?:add|delete) element inet \S+ (\S+)/.exec(text)?.[1];
  return container === undefined ? undefined : { container, element: text.slice(from - 1, to) };
};

const reasonOf = ({ code, stderr }: ProgramResult): RefusalData['reason'] => {
  if (code === 127 || /Protocol not supported|Operation not supported/.test(stderr)) return 'NftMissing';
  return /Operation not permitted/.test(stderr) ? 'CapabilityMissing' : 'NftRefused';
};
