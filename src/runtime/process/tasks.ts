/** Tasks is where promises go that nobody awaits. A rejection is never lost: it is logged and ends the process. */
import { isBug } from './bug.ts';
import type { Log } from './log.ts';

/** The background work of a process. */
export interface Tasks {
  /** Watches over a promise until it settles. A rejection is logged with the name and ends the process. */
  spawn(name: string, promise: Promise<unknown>): void;
}

/** Returns the tasks of a process. `crash` ends it with exit code 1. */
export function createTasks(deps: { readonly log: Log; readonly crash: () => void }): Tasks {
  return {
    spawn(name, promise) {
      promise.catch((error: unknown) => {
        const what = isBug(error) ? 'a bug' : 'a failure it cannot handle';
        deps.log.fatal({ component: name, err: error }, `task "${name}" ended by ${what}`);
        deps.crash();
      });
    },
  };
}
