import { must } from './host/command.ts';
import { forget, type Instance, listInstances, readRecord, self, stateOf, updateRecord } from './host/instance.ts';
import { end, labMark, membersOf } from './host/processes.ts';
import { namespaceInodes, namespaceNames, releaseNamespaceFolder } from './net/namespaces.ts';

/**
 * Removes every trace of a lab: processes, namespaces with all links in them, mounts, files. Works from what is really
 * there, not only from the record, so it also cleans up after a driver that was killed. May be called for an absent lab.
 */
export async function takeDown(instance: Instance): Promise<void> {
  if (readRecord(instance) !== undefined) updateRecord(instance, () => ({ phase: 'stopping', driver: self() }));
  // A process may fork while it is being looked for, and has no environment in the instant of its exec: only two looks
  // in a row that find nobody are the end.
  for (let emptyLooks = 0; emptyLooks < 2; ) {
    const members = membersOf([`${labMark}=${instance.name}`], namespaceInodes(instance));
    emptyLooks = members.length === 0 ? emptyLooks + 1 : 0;
    await end(members, 0);
  }
  for (const name of namespaceNames(instance)) await must(`remove namespace ${name}`, ['ip', 'netns', 'delete', name]);
  await releaseNamespaceFolder();
  forget(instance);
}

/** Removes all labs whose driver, owner or machine has died. Returns their names. */
export async function removeStale(): Promise<string[]> {
  const stale = listInstances().filter((instance) => stateOf(instance) === 'stale');
  for (const instance of stale) await takeDown(instance);
  return stale.map((instance) => instance.name);
}
