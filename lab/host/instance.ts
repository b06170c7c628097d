import { mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { BadInput, LabFailure } from './failure.ts';
import { identify, isRunning, type ProcessId } from './processes.ts';

/**
 * An instance is one lab: a name, a folder, and a record of what was started. Labs differ only by name, so two of them
 * can live side by side. The record is written before anything it describes is made: a lab whose driver died is
 * recognised by it and removed by the next command.
 */
const processId = z.object({ pid: z.int(), startTicks: z.string() });
const recordSchema = z.object({
  phase: z.enum(['starting', 'up', 'stopping']),
  /** The command that is at work on the lab while the phase is not `up`. */
  driver: processId,
  /** If given, the lab lives only as long as this process: labs of tests. */
  owner: processId.optional(),
  /** A lab does not survive a reboot of the machine, its folder does. */
  bootId: z.string(),
  shape: z.unknown(),
  relay: z.object({ port: z.int() }).optional(),
  processes: z.record(z.string(), processId),
  power: z.record(z.string(), z.enum(['on', 'off', 'hung'])),
});
export type InstanceRecord = Readonly<z.infer<typeof recordSchema>>;

/** Where all labs of this machine are kept. */
export const labsFolder = '/var/lib/sallyport-lab';

export interface Instance {
  readonly name: string;
  readonly folder: string;
}

const namePattern = /^[a-z][a-z0-9-]{0,19}$/;

/** Checks the name and returns the instance; does not touch the disk. */
export function instanceOf(name: string): Instance {
  if (!namePattern.test(name)) {
    throw new BadInput(
      `--name ${JSON.stringify(name)} is not allowed: use 1 to 20 of a-z, 0-9 and -, starting with a letter`,
    );
  }
  return { name, folder: join(labsFolder, name) };
}

/**
 * Makes the folder of a new lab; false if a lab of that name has one already. The folder appears together with its
 * record, in one step: a lab without a readable record is a dead one to all other commands.
 */
export function claim(instance: Instance, shape: unknown, owner: ProcessId | undefined): boolean {
  const unborn: Instance = { ...instance, folder: join(labsFolder, `.${instance.name}.${process.pid}`) };
  mkdirSync(unborn.folder, { recursive: true, mode: 0o755 });
  writeRecord(unborn, {
    phase: 'starting',
    driver: self(),
    ...(owner === undefined ? {} : { owner }),
    bootId: bootId(),
    shape,
    processes: {},
    power: {},
  });
  try {
    renameSync(unborn.folder, instance.folder);
    return true;
  } catch (error) {
    rmSync(unborn.folder, { recursive: true });
    if (error instanceof Error && 'code' in error && error.code === 'ENOTEMPTY') return false;
    throw error;
  }
}

/** The record of a lab; undefined if there is none that can be read. */
export function readRecord(instance: Instance): InstanceRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(recordFile(instance), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Changes the record; throws if the lab is gone. The file is replaced in one step, so a reader never sees half of it. */
export function updateRecord(instance: Instance, change: (record: InstanceRecord) => Partial<InstanceRecord>): void {
  const record = readRecord(instance);
  if (record === undefined) throw new LabFailure(`the record of lab "${instance.name}" is gone`);
  writeRecord(instance, { ...record, ...change(record) });
}

/** What can be said of a lab from its record alone. */
export type InstanceState = 'absent' | 'busy' | 'up' | 'stale';

/** `busy`: another command works on it now. `stale`: its driver, owner or machine died; it only waits to be removed. */
export function stateOf(instance: Instance): InstanceState {
  const record = readRecord(instance);
  if (record === undefined) return listInstances().some((other) => other.name === instance.name) ? 'stale' : 'absent';
  if (record.bootId !== bootId()) return 'stale';
  if (record.owner !== undefined && !isRunning(record.owner)) return 'stale';
  if (record.phase !== 'up') return isRunning(record.driver) ? 'busy' : 'stale';
  // An owner may kill all parts of its lab and start them again: that is what its tests are about.
  if (record.owner !== undefined) return 'up';
  const parts = Object.values(record.processes);
  return parts.length > 0 && parts.every((part) => !isRunning(part)) ? 'stale' : 'up';
}

/** All labs that have a folder, by name. */
export function listInstances(): Instance[] {
  try {
    const names = readdirSync(labsFolder).filter((name) => namePattern.test(name));
    return names.sort().map((name) => ({ name, folder: join(labsFolder, name) }));
  } catch {
    return [];
  }
}

/** Removes the folder of a lab, and the common folder if it was the last one. */
export function forget(instance: Instance): void {
  rmSync(instance.folder, { recursive: true, force: true, maxRetries: 3 });
  removeIfEmpty(labsFolder);
}

/** Removes a folder that nobody uses. Another lab may be made in this very instant: what is not empty stays. */
export function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!['ENOTEMPTY', 'EBUSY', 'ENOENT'].includes(code)) throw error;
  }
}

/** The identity of this process. */
export function self(): ProcessId {
  const id = identify(process.pid);
  if (id === undefined) throw new LabFailure('cannot read /proc/self/stat');
  return id;
}

function writeRecord(instance: Instance, record: InstanceRecord): void {
  const temporary = `${recordFile(instance)}.new`;
  writeFileSync(temporary, `${JSON.stringify(record, null, 2)}\n`);
  renameSync(temporary, recordFile(instance));
}

function recordFile(instance: Instance): string {
  return join(instance.folder, 'lab.json');
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
