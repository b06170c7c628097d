import { setTimeout as delay } from 'node:timers/promises';

/** How long interrupted work may take to notice that the ground is gone. */
const settleLimitMs = 15_000;

/**
 * Does `work`. When the user presses Ctrl-C meanwhile (or the process is told to end), runs `cleanUp` and exits with
 * code 130. The clean-up pulls the ground from under the work, so the work soon fails; what it made until then is
 * cleaned up by a second run. A second signal ends the process at once, as users expect.
 */
export async function interruptible<T>(
  work: () => Promise<T>,
  cleanUp: () => Promise<void>,
  tell: (signal: NodeJS.Signals) => void,
): Promise<T> {
  let cleaning: Promise<never> | undefined;
  const stop = (signal: NodeJS.Signals) => {
    release();
    tell(signal);
    cleaning = cleanUpTwice().then(
      () => process.exit(130),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  const cleanUpTwice = async () => {
    await cleanUp();
    await Promise.race([working.catch(() => {}), delay(settleLimitMs, undefined, { ref: false })]);
    await cleanUp();
  };
  const release = () => {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  const working = work();
  try {
    const value = await working;
    return cleaning === undefined ? value : await cleaning;
  } catch (error) {
    // What failed was the clean-up's doing: it ends the process.
    if (cleaning !== undefined) return await cleaning;
    throw error;
  } finally {
    release();
  }
}
