/**
 * Runs `cleanUp` when the user presses Ctrl-C (or the process is told to end), then exits with code 130. Returns how to
 * stop listening. A second signal during the clean-up ends the process at once, as users expect.
 */
export function onInterrupt(cleanUp: (signal: NodeJS.Signals) => Promise<void>): () => void {
  const stop = (signal: NodeJS.Signals) => {
    release();
    cleanUp(signal).then(
      () => process.exit(130),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  const release = () => {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return release;
}
