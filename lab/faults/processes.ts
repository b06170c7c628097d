import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ControlPlanePart } from '../cluster/control-plane.ts';
import { instanceOf, readRecord } from '../host/instance.ts';
import { end, labMark, type ProcessId, signal, startDaemon } from '../host/processes.ts';
import type { Lab } from '../lab.ts';
import { processesOn } from '../power.ts';

/** The command line of an agent. */
export const agentPattern = /sallyport\S* agent|main\S* agent/;

/**
 * Stops the processes of nodes that match, for a time, as a debugger or a hypervisor does; returns how many there were. All of them
 * are looked up first: that takes a while, and those that are stopped at once must not be stopped one after the other.
 */
export async function pause(lab: Lab, nodes: readonly string[], pattern: RegExp, forMs: number): Promise<number> {
  const found = nodes.flatMap((node) => processesOn(instanceOf(lab.name), node, pattern));
  for (const process of found) signal(process, 'SIGSTOP');
  try {
    await delay(forMs);
  } finally {
    for (const process of found) signal(process, 'SIGCONT');
  }
  return found.length;
}

/** Kills a part of the control plane and leaves it dead; `lab.restart` brings it back. */
export async function stopPart(lab: Lab, part: ControlPlanePart): Promise<void> {
  const running = readRecord(instanceOf(lab.name))?.processes[part];
  if (running !== undefined) await end([running], 0);
}

/** Keeps every core busy with as many endless loops, until the returned function is called, or the lab goes. */
export function overload(lab: Lab, loopsPerCore: number): () => Promise<void> {
  const instance = instanceOf(lab.name);
  const loops = Array.from({ length: availableParallelism() * loopsPerCore }, (): ProcessId => {
    const argv = ['sh', '-c', 'while :; do :; done'];
    return startDaemon({ argv, env: { [labMark]: instance.name }, logFile: join(instance.folder, 'overload.log') });
  });
  return () => end(loops, 0);
}
