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
