/** Progress tells a person what is going on: one line per finished step, and a moving line for long ones. */
export interface Progress {
  /** Runs one step; prints its title when it starts (terminals) and title plus duration when it is done. */
  step<T>(title: string, work: (update: (note: string) => void) => Promise<T>): Promise<T>;
  /** Prints a plain line. */
  line(text: string): void;
}

const quietUpdateMs = 20_000;

/** Progress for people on `stream`; on a terminal the current step is shown on a line that is rewritten. */
export function progressOn(stream: NodeJS.WriteStream): Progress {
  const isTerminal = stream.isTTY === true;
  const rewrite = (text: string) => stream.write(`\r\x1b[2K${text}`);
  return {
    line: (text) => void stream.write(`${isTerminal ? '\r\x1b[2K' : ''}${text}\n`),
    async step(title, work) {
      const start = performance.now();
      const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`;
      let lastNoteAt = start;
      if (isTerminal) rewrite(`  ${title} ...`);
      const update = (note: string) => {
        if (isTerminal) rewrite(`  ${title}: ${note} (${seconds()})`);
        else if (performance.now() - lastNoteAt > quietUpdateMs) {
          lastNoteAt = performance.now();
          stream.write(`  ${title}: ${note} (${seconds()})\n`);
        }
      };
      try {
        const value = await work(update);
        stream.write(`${isTerminal ? '\r\x1b[2K' : ''}  ${title} (${seconds()})\n`);
        return value;
      } catch (error) {
        stream.write(`${isTerminal ? '\r\x1b[2K' : ''}  ${title}: failed (${seconds()})\n`);
        throw error;
      }
    },
  };
}

/** Progress that says nothing: for tests and for commands whose output is read by programs. */
export const silent: Progress = { line: () => {}, step: (_title, work) => work(() => {}) };
