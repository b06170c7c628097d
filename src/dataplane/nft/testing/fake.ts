/** Nftables without a kernel: the real code in front of a fake nft that holds state. */
import type { StateFile } from '../../state-file.ts';
import { memoryStateFile } from '../../state-file.ts';
import type { Timers } from '../../timers.ts';
import { createNftables, type Nftables } from '../nftables.ts';
import { FakeNft } from './fake-nft.ts';

export interface FakeNftables extends Nftables {
  /** What is behind it: meddle with it, let it count, let it fail. */
  readonly kernel: FakeNft;
}

const timers: Timers = {
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/** A table in a kernel of its own. Given the kernel and the file of another one, it is that one after a restart. */
export const createFakeNftables = (
  given: { readonly kernel?: FakeNft; readonly file?: StateFile; readonly clock?: Timers } = {},
): FakeNftables => {
  const { kernel = new FakeNft(), file = memoryStateFile(), clock = timers } = given;
  const table = createNftables({
    programs: kernel,
    file,
    clock,
    openChangeFeed: kernel.openChangeFeed,
    random: Math.random,
  });
  return {
    kernel,
    lentSignatures: table.lentSignatures,
    apply: (desired) => table.apply(desired),
    read: () => table.read(),
    distrust: () => table.distrust(),
    remove: () => table.remove(),
    counters: () => table.counters(),
    watch: (onForeign, signal) => table.watch(onForeign, signal),
  };
};
