/** A machine for the conformance suite of nftables: the kernel, seen from a network namespace of the test. */
import { loadChangeFeed } from '../../src/dataplane/nft/change-feed.ts';
import { loadNftLibrary, withNftLibrary } from '../../src/dataplane/nft/library.ts';
import { createNftables } from '../../src/dataplane/nft/nftables.ts';
import type { Machine } from '../../src/dataplane/nft/testing/conformance.ts';
import { memoryStateFile } from '../../src/dataplane/state-file.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import { type Namespace, openNamespace } from './namespace.ts';

export interface KernelMachine extends Machine {
  readonly namespace: Namespace;
}

/** Opens a namespace with nothing in it. With the library, changes are made by it, as the agent does. */
export const openKernelMachine = async (
  label: string,
  { hasLibrary } = { hasLibrary: false },
): Promise<KernelMachine> => {
  const namespace = await openNamespace(label);
  const openLibrary = await loadNftLibrary();
  const library = hasLibrary ? inNamespace(namespace.name, openLibrary) : undefined;
  if (hasLibrary && library === undefined) throw new Error('libnftables cannot be used on this machine');
  const openFeed = await loadChangeFeed();
  let file = memoryStateFile();
  return {
    namespace,
    start: ({ hasState } = { hasState: true }) => {
      if (!hasState) file = memoryStateFile();
      return createNftables({
        programs: withNftLibrary(namespace.programs, library),
        file,
        openChangeFeed: () => inNamespace(namespace.name, openFeed),
        clock: {
          after: (delayMs, callback) => {
            const timer = setTimeout(callback, delayMs);
            return () => clearTimeout(timer);
          },
        },
        random: Math.random,
      });
    },
    meddle: namespace.nft,
    until: eventually,
    [Symbol.asyncDispose]: async () => {
      library?.close();
      await namespace.close();
    },
  };
};
