/** The rank of a thread among all that runs on a node. */
import { setPriority } from 'node:os';
import type { Libc } from '../../dataplane/libc.ts';

const NICE = -10;

/** Lets this thread run before most of the node. It takes a capability that agents need not have: then it is like all others. */
export const goFirst = (libc: Libc): void => {
  try {
    setPriority(libc.gettid(), NICE);
  } catch {
    // EACCES without the capability SYS_NICE.
  }
};
