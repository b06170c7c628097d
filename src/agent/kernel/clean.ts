/**
 * Cleaning takes everything of ours off a node: the table, devices with their addresses, rules, routes and proxy entries,
 * settings, the state folder. It asks no API server, so it also works after the cluster is gone. It may be repeated.
 */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EgressError } from '../../api/error.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { Kernel } from './kernel.ts';

/** What cleaning needs. */
export interface CleanDeps {
  readonly kernel: Pick<Kernel, 'nftables' | 'gate' | 'network' | 'sysctls'>;
  readonly stateFolder: string;
  readonly log: Log;
}

/** Cleans the node; every step is tried whatever the others do. Returns false when something is left. */
export const cleanNode = async ({ kernel, stateFolder, log }: CleanDeps): Promise<boolean> => {
  const lefts: string[] = [];
  const attempt = async (what: string, step: () => Promise<readonly string[]>): Promise<void> => {
    try {
      const refused = await step();
      lefts.push(...refused);
      if (refused.length === 0) log.info({ component: 'clean' }, `${what}: gone`);
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      lefts.push(`${what}: ${error.message}`);
    }
  };
  // The table first: without it no packet is sent into the tunnel any more.
  await attempt('the table', async () => {
    await kernel.nftables.remove();
    await kernel.gate.remove();
    return [];
  });
  await attempt('devices, rules and routes', async () =>
    (await kernel.network.remove()).refused.map(({ what, message }) => `${what}: ${message}`),
  );
  await attempt('kernel settings', async () =>
    (await kernel.sysctls.restore()).refused.map(({ path, message }) => `${path}: ${message}`),
  );
  // What could not be put back is written there: the next try needs it.
  if (lefts.length === 0) {
    await removeFolder(stateFolder);
  }
  for (const left of lefts) log.error({ component: 'clean' }, left);
  return lefts.length === 0;
};

const removeFolder = async (folder: string): Promise<void> => {
  const isNothing = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT';
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (isNothing(error)) return [];
    throw error;
  });
  // One by one: to remove all at once ends with the first refusal, which is that of the mount.
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true });
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    // In a pod the folder is a mount: it is emptied and stays.
    if (error.code !== 'EBUSY' && !isNothing(error)) throw error;
  });
};
