/** Which errors are ours. Everything else is the world's or the user's fault and is handled where it happens. */
import { AssertionError } from 'node:assert';

/**
 * A promise of our own code was broken. Thrown on purpose where the type system cannot see it; ends the process.
 */
export class Bug extends Error {
  override readonly name = 'Bug';
}

/**
 * Tells whether an error means that our code is wrong, so that the process must end and start afresh.
 * Parsers of foreign input throw SyntaxError or TypeError too: wrap their errors where the input enters.
 */
export function isBug(error: unknown): boolean {
  return (
    !(error instanceof Error) ||
    error instanceof Bug ||
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    error instanceof SyntaxError ||
    error instanceof AssertionError
  );
}

/** Marks a branch that the types rule out. */
export function assertNever(value: never): never {
  throw new Bug(`unexpected value ${JSON.stringify(value)}`);
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
