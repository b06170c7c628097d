/** How values become lines for a terminal: aligned columns, and colours where somebody can see them. */

/** What a piece of text says about itself. */
export type Tone = 'heading' | 'good' | 'bad' | 'quiet';

/** Gives a text the colour of its tone, or leaves it as it is. */
export type Paint = (text: string, tone: Tone) => string;

/** For files, pipes and tests. */
export const plain: Paint = (text) => text;

// SGR codes of ECMA-48; bold and dim follow the colours that the reader has chosen.
const codes: Readonly<Record<Tone, string>> = { heading: '1', good: '32', bad: '31', quiet: '2' };

/** For terminals. */
export const coloured: Paint = (text, tone) => `\u001b[${codes[tone]}m${text}\u001b[0m`;

/** One cell of a table; a plain text has no tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

/**
 * Rows as lines with aligned columns, two blanks between them. The last column is not padded.
 * A row may have fewer cells than others.
 */
export const aligned = (rows: readonly (readonly Cell[])[], paint: Paint): string[] => {
  const cells = rows.map((row) => row.map(cellOf));
  const widths: number[] = [];
  for (const row of cells) {
    for (const [index, { text }] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, text.length);
  }
  return cells.map((row) =>
    row
      .map(({ text, tone }, index) => {
        // Padding stays outside the colour, so that a line looks the same with and without.
        const padding = index === row.length - 1 ? '' : ' '.repeat((widths[index] ?? 0) - text.length);
        return `${tone === undefined ? text : paint(text, tone)}${padding}`;
      })
      .join('  '),
  );
};

const cellOf = (cell: Cell): { readonly text: string; readonly tone?: Tone } => {
  const { text, tone } = typeof cell === 'string' ? { text: cell } : cell;
  return tone === undefined ? { text: printable(text) } : { text: printable(text), tone };
};

/** A text from the cluster as one line: whoever may write a status must not be able to steer a terminal with it. */
export const printable = (text: string): string => text.replace(/\p{Cc}+/gu, ' ');

/** Lines moved to the right. */
export const indented = (lines: readonly string[], blanks = 2): string[] =>
  lines.map((line) => (line === '' ? '' : `${' '.repeat(blanks)}${line}`));
