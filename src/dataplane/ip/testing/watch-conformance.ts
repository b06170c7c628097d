/** What every watch must tell: run on the fake in the unit tests, and on Linux in test/kernel. */
import { describe } from 'node:test';
import type { Programs } from '../../program.ts';
import { createNetwork } from '../network.ts';
import { everything } from './desired.ts';
import { runningClock, usualNames } from './fake-network.ts';
import { applied, nodeTests, type World } from './node.ts';
import { drifts } from './tampering.ts';

// Drift must be told within a second; this is when a test gives up, on a machine that has other work.
const LIMIT_MS = 120_000;

/** Declares the suite. */
export const watchConformance = (name: string, open: () => Promise<World>): void => {
  const withNode = nodeTests(open);

  describe(`watching the network: ${name}`, () => {
    withNode('every change of ours by others is told', async ({ say, programs }) => {
      const lines = signals<string>();
      const calls = signals<'call'>();
      const overheard: Programs = {
        ...programs,
        follow: (argv, onLine, signal) =>
          programs.follow(
            argv,
            (line) => {
              lines.give(line);
              onLine(line);
            },
            signal,
          ),
      };
      const network = createNetwork({ programs: overheard, names: usualNames, clock: runningClock });
      const end = new AbortController();
      const watching = network.watch(() => calls.give('call'), end.signal);
      try {
        await calls.one(() => true, 'the start');
        for (const [index, drift] of drifts.entries()) {
          // An entry too many on an interface of others harms nobody; it goes with the next change.
          if (drift.includes('replace proxy')) continue;
          await applied(network, everything);
          // When this address is told, everything that applying has caused was told before.
          await say(`ip addr add 192.0.2.${index + 1}/32 dev lo`);
          await lines.one((line) => line.includes(` 192.0.2.${index + 1}/32 `), 'the mark');
          calls.forget();
          await say(drift);
          await calls.one(() => true, drift);
          network.distrust();
        }
      } finally {
        end.abort();
        await watching;
      }
    });
  });
};

/** Things that come one by one, and the wait for one of them. */
const signals = <T>() => {
  let come: readonly T[] = [];
  let onCome = (): void => {};
  return {
    give: (thing: T): void => {
      come = [...come, thing];
      onCome();
    },
    forget: (): void => {
      come = [];
    },
    one: async (isMeant: (thing: T) => boolean, why: string): Promise<void> => {
      const found = Promise.withResolvers<void>();
      const limit = setTimeout(() => found.reject(new Error(`not told: ${why}`)), LIMIT_MS);
      onCome = () => {
        if (come.some(isMeant)) found.resolve();
      };
      onCome();
      await found.promise.finally(() => clearTimeout(limit));
    },
  };
};
