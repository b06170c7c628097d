/**
 * Does `work`. When the user presses Ctrl-C meanwhile (or the process is told to end), runs `cleanUp` instead of going
 * on and exits with code 130. A second signal during the clean-up ends the process at once, as users expect.
 */
export async function interruptible<T>(
  cleanUp: (signal: NodeJS.Signals) => Promise<void>,
  work: () => Promise<T>,
): Promise<T> {
  let cleaning: Promise<never> | undefined;
  const stop = (signal: NodeJS.Signals) => {
    release();
    cleaning = cleanUp(signal).then(
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
  try {
    return await work();
  } catch (error) {
    // What failed was the clean-up's doing: it ends the process.
    if (cleaning !== undefined) return await cleaning;
    throw error;
  } finally {
    release();
  }
}
