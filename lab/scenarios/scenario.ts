import type { Lab } from '../lab.ts';

/**
 * A scenario is a story with proof: steps that act on a lab and say what they saw. The demo tells it, the end-to-end
 * tests run it, benchmarks measure it; there is one file for all three.
 */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly steps: readonly Step[];
}

export interface Step {
  /** What is done and what must come out, as a person would say it. */
  readonly title: string;
  /** Does it and returns what was seen; throws `Unexpected` if that is not what the title promises. */
  readonly act: (lab: Lab, tell: Tell) => Promise<string>;
}

/** Who listens while a step acts. */
export interface Tell {
  /** A command as a user would type it; it is run right after. */
  readonly typed: (line: string) => void;
  /** What it printed. */
  readonly printed: (text: string) => void;
}

/** For tests, which look at the outcome only. */
export const silently: Tell = { typed: () => {}, printed: () => {} };

/** What was seen is not what the step promises. */
export class Unexpected extends Error {
  override readonly name = 'Unexpected';
}

/** Throws unless both are the same text; the message shows them. */
export function expectSame(what: string, seen: string, promised: string): void {
  if (seen !== promised) throw new Unexpected(`${what}: promised ${promised}, seen ${seen}`);
}
