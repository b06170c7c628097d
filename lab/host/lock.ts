import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { LabFailure } from './failure.ts';

/**
 * Does `work` while no other process does anything under the lock of the same folder; waits for its turn. Node has no locks,
 * flock(1) has: it holds ours as long as its standard input is open, so a process that dies lets go of it. The folder itself is
 * locked: a file would have to be left behind for ever.
 */
export async function exclusively<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const holder = spawn('flock', [folder, 'sh', '-c', 'echo held; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(holder, 'exit');
  // Who ends early, or cannot be started, never says that it holds the lock.
  const isHeld = await Promise.race([once(holder.stdout, 'data').then(() => true), ended.then(() => false)]);
  if (!isHeld) throw new LabFailure(`cannot lock ${folder}`);
  try {
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
