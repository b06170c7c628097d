/**
 * loadAccess decides how a process reaches the API server, and is the only place in this folder that touches the
 * machine: environment, files, programs.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../process/clock.ts';
import type { AccessDeps, ExecResult, ServerAccess } from './access.ts';
import { inClusterAccess, isInCluster } from './in-cluster.ts';
import { type KubeconfigSelection, kubeconfigAccess } from './kubeconfig-access.ts';

/** Returns access by the named kubeconfig; without a name by the pod's service account, else by KUBECONFIG. */
export function loadAccess(
  selection: KubeconfigSelection = {},
  deps: AccessDeps = systemAccessDeps(systemClock),
): Promise<ServerAccess> {
  const isAskedFor = selection.path !== undefined || selection.context !== undefined || !!deps.env.KUBECONFIG;
  return !isAskedFor && isInCluster(deps.env) ? inClusterAccess(deps) : kubeconfigAccess(selection, deps);
}

/** The machine as it is. */
export function systemAccessDeps(clock: Clock): AccessDeps {
  return { clock, env: process.env, readFile: (path) => readFile(path, 'utf8'), exec };
}

function exec(
  command: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number },
): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    const settings = { env: options.env, timeout: options.timeoutMs, maxBuffer: 1024 * 1024 };
    const child = execFile(command, args, settings, (error, stdout, stderr) => {
      if (error === null) resolve({ exitCode: 0, stdout, stderr });
      // A number is the exit code of a program that ran; anything else means that it did not run to its end.
      else if (typeof error.code === 'number') resolve({ exitCode: error.code, stdout, stderr });
      else reject(error);
    });
    // A plugin that asks questions must see the end of its input instead of waiting for ever.
    child.stdin?.end();
  });
}
