/**
 * Lines of an engine's log on their way to the access log. There is one for every request, and nearly all are as users read
 * them already: these are passed on as the bytes that they are, many at once, and only the others become text.
 */

export interface LineJudge {
  /** Whether the line that begins there is as users read it; it may be changed in its place. */
  isFinal(bytes: Buffer, start: number): boolean;
  /** Any other line without its newline, as users read it; empty when nobody should. */
  rewritten(line: Buffer): string;
}

const NEWLINE = 0x0a;
const BRACE_END = 0x7d;

/** What becomes of whole lines; undefined when nothing is left of them. */
export const passLines = (chunk: Buffer, judge: LineJudge): Buffer | undefined => {
  const parts: Buffer[] = [];
  let final = 0;
  for (let start = 0; start < chunk.length; ) {
    const end = chunk.indexOf(NEWLINE, start) + 1 || chunk.length;
    // Half a line is what a program leaves that was killed.
    if (chunk[end - 2] !== BRACE_END || !judge.isFinal(chunk, start)) {
      if (final < start) parts.push(chunk.subarray(final, start));
      const text = judge.rewritten(chunk.subarray(start, chunk[end - 1] === NEWLINE ? end - 1 : end));
      if (text !== '') parts.push(Buffer.from(`${text}\n`));
      final = end;
    }
    start = end;
  }
  if (final < chunk.length) parts.push(chunk.subarray(final));
  return parts.length > 1 ? Buffer.concat(parts) : parts[0];
};
