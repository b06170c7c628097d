/** Programs that refuse everything, for what comes before them: they remember what was left for them to do. */
import type { Programs } from '../program.ts';

export interface RefusingPrograms extends Programs {
  /** Command line and input of each program that was run, in order. */
  readonly left: readonly string[];
}

export const createRefusingPrograms = (): RefusingPrograms => {
  const left: string[] = [];
  return {
    left,
    run: async (argv, options) => {
      left.push(`${argv.join(' ')} < ${options?.input ?? ''}`);
      return { code: 1, stdout: '', stderr: 'the program says why' };
    },
    follow: async () => ({ code: 0, stdout: '', stderr: '' }),
  };
};
