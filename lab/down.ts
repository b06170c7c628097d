import { dirname } from 'node:path';
import { run } from './host/command.ts';
import { LabFailure } from './host/failure.ts';
import { forget, type Instance, labsFolder, listInstances, self, stateOf, updateRecord } from './host/instance.ts';
import { exclusively } from './host/lock.ts';
import { end, labMark, membersOf } from './host/processes.ts';
import { namespaceInodes, namespaceNames, releaseNamespaceFolder } from './net/namespaces.ts';

/**
 * Removes every trace of a lab: processes, namespaces with all links in them, mounts, files. Works from what is really
 * there, not only from the record, so it also cleans up after a driver that was killed. May be called for an absent lab,
 * and by two at once: Ctrl-C while a failed `up` takes itself down.
 */
export async function takeDown(instance: Instance): Promise<void> {
  if (stateOf(instance) !== 'absent') markStopping(instance);
  // A process may fork while it is being looked for, and has no environment in the instant of its exec: only two looks
  // in a row that find nobody are the end.
  for (let emptyLooks = 0; emptyLooks < 2; ) {
    const members = membersOf([`${labMark}=${instance.name}`], namespaceInodes(instance));
    emptyLooks = members.length === 0 ? emptyLooks + 1 : 0;
    await end(members, 0);
  }
  for (const name of namespaceNames(instance)) {
    const deleted = await run(['ip', 'netns', 'delete', name]);
    if (deleted.code !== 0 && namespaceNames(instance).includes(name)) {
      throw new LabFailure(`cannot remove namespace ${name}`, deleted.stderr);
    }
  }
  await releaseNamespaceFolder();
  forget(instance);
}

function markStopping(instance: Instance): void {
  try {
    updateRecord(instance, () => ({ phase: 'stopping', driver: self() }));
  } catch (error) {
    // A lab without a readable record is on its way out already.
    if (!(error instanceof LabFailure)) throw error;
  }
}

/**
 * Removes all labs whose driver, owner or machine has died. Returns their names. One process at a time: two test files begin
 * together, and the one that is done first may already make a lab of the same name.
 */
export async function removeStale(): Promise<string[]> {
  const isStale = (instance: Instance) => stateOf(instance) === 'stale';
  if (!listInstances().some(isStale)) return [];
  return exclusively(dirname(labsFolder), async () => {
    const stale = listInstances().filter(isStale);
    for (const instance of stale) await takeDown(instance);
    return stale.map((instance) => instance.name);
  });
}
