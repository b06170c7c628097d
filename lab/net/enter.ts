/** Runs code of this very process in a network namespace: a raw socket belongs to the one it was opened in. */
import { closeSync, openSync } from 'node:fs';
import koffi from 'koffi';

const CLONE_NEWNET = 0x40000000;

/** Calls the function in the namespace at that path and comes back. It may not wait: what runs meanwhile would be there too. */
export const callInside = <T>(path: string, call: () => T): T => {
  const home = openSync('/proc/thread-self/ns/net', 'r');
  const there = openSync(path, 'r');
  try {
    enter(there);
    return call();
  } finally {
    enter(home);
    closeSync(home);
    closeSync(there);
  }
};

const enter = (descriptor: number): void => {
  const setns = koffi.load(null).func('int setns(int descriptor, int kind)');
  if (setns(descriptor, CLONE_NEWNET) !== 0) throw new Error(`setns: error ${koffi.errno()}`);
};
