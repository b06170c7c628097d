/** The two ways a lab command can end badly; the command line turns them into one sentence and an exit code. */

/** What the user asked for cannot be done as asked; nothing was changed. Exit code 2. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

/** The machine or a program did not do what it should; `detail` holds the last lines it printed. Exit code 1. */
export class LabFailure extends Error {
  override readonly name = 'LabFailure';
  readonly detail: string;

  constructor(message: string, detail = '', options?: ErrorOptions) {
    super(message, options);
    this.detail = detail;
  }
}

/** So many errors behind an error are told: some are their own cause. */
const deepest = 5;

/**
 * All that an error says, for a log whose reader cannot go and look: code, message, the last lines of a program, and the same of
 * what is behind it. Node gives an AggregateError (a refused connection to a name, for one) no message of its own.
 */
export function accountOf(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  const name = error.name === 'Error' || error instanceof LabFailure ? '' : error.name;
  const own = [name, error.message.includes(code) ? '' : code, error.message].filter(Boolean).join(': ') || error.name;
  const behind = depth >= deepest ? [] : [...('errors' in error ? listOf(error.errors) : []), ...listOf(error.cause)];
  return [
    own,
    error instanceof LabFailure ? error.detail : '',
    ...behind.map((each) => `because ${accountOf(each, depth + 1)}`.replaceAll('\n', '\n  ')),
  ]
    .filter(Boolean)
    .join('\n');
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];
