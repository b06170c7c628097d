/**
 * Drift watches for changes of our part of the kernel that somebody else makes. It repairs nothing: whoever listens
 * reads and compares, and what is not wrong costs one look. nft and ip tell changes as they happen; settings tell
 * nobody, so they are looked at twice a second.
 */
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { Kernel, KernelPart } from '../kernel/kernel.ts';

/** What watching needs. */
export interface DriftDeps {
  readonly kernel: Pick<Kernel, 'network' | 'nftables' | 'sysctls'>;
  readonly clock: Clock;
  /** The settings that should be in force; undefined until some are. */
  readonly sysctls: () => ReadonlyMap<string, string> | undefined;
  /** When we last changed the network ourselves, on the monotonic clock; undefined when we never did. */
  readonly networkChangedAtMs: () => number | undefined;
  /** A part may differ from what was applied. */
  readonly onDrift: (part: KernelPart) => void;
}

/** A change is often a dozen lines of `ip monitor`, which are one look. */
const gatherMs = 50;
/**
 * What is told right after a change of our own is most likely that change. It is looked at all the same, but later: a
 * look starts six programs, and the next change of ours, such as an EIP after the routes to it, must not wait for them.
 */
const ownMs = 500;
const settingsMs = 500;

/** Watches until the signal is aborted. Rejects only for bugs. */
export const watchDrift = async (deps: DriftDeps, signal: AbortSignal): Promise<void> => {
  const { kernel, clock, sysctls, networkChangedAtMs, onDrift } = deps;
  let isWaiting = false;
  const onNetwork = (): void => {
    if (isWaiting) return;
    isWaiting = true;
    const ownAgeMs = clock.monotonicMs() - (networkChangedAtMs() ?? Number.NEGATIVE_INFINITY);
    clock.after(ownAgeMs < ownMs ? ownMs : gatherMs, () => {
      isWaiting = false;
      if (!signal.aborted) onDrift('network');
    });
  };
  const watchSettings = async (): Promise<void> => {
    while (!signal.aborted) {
      const desired = sysctls();
      if (desired !== undefined && !kernel.sysctls.isInStep(desired)) onDrift('sysctls');
      await wait(clock, settingsMs, signal);
    }
  };
  await Promise.all([
    // At once: while the table is gone, packets leak. It tells only of changes that are not ours.
    kernel.nftables.watch(() => onDrift('table'), signal),
    kernel.network.watch(onNetwork, signal),
    watchSettings(),
  ]);
};
