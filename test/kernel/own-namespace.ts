/**
 * Puts the whole test process into a fresh network namespace, with its loopback device up: sockets and programs of the
 * test are in it from then on, and it is gone when they are. For tests that have a file, and so a process, of their own.
 */
import { execFileSync } from 'node:child_process';
import koffi from 'koffi';

const CLONE_NEWNET = 0x40000000;

/** Called once, before the first socket. Node makes sockets and programs on its first thread, which is the one that moves. */
export const enterOwnNamespace = (): void => {
  const unshare = koffi.load(null).func('int unshare(int kinds)');
  if (unshare(CLONE_NEWNET) !== 0) throw new Error(`unshare: error ${koffi.errno()}`);
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
};
