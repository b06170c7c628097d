/**
 * Watches that the API server closes itself. It does so when the few places that it has for a watch's waiting events are
 * full for some hundredths of a second; where it shares two cores with everybody else, that happens to any reader.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import type { BareControlPlane } from '../../lab/bare-control-plane.ts';
import { pathOf } from '../../src/runtime/kube/resource.ts';
import { policies } from './cluster.ts';

const metric = /^apiserver_terminated_watchers_total\{[^}]*egresspolicies[^}]*\} (\d+)/gm;

/** How many watches of policies it has closed since its start, as it says; whoever had them. */
export async function closedWatches({ kubectl, kubeconfig }: BareControlPlane): Promise<number> {
  const args = ['--kubeconfig', kubeconfig, 'get', '--raw', '/metrics'];
  const { stdout } = await promisify(execFile)(kubectl, args, { maxBuffer: 64 * 1024 * 1024 });
  return [...stdout.matchAll(metric)].reduce((total, [, count]) => total + Number(count), 0);
}

/** A reader that has nothing of ours: kubectl, whose output nobody looks at. `end` tells how many watches it lost. */
export function startForeignReader({ kubectl, kubeconfig }: BareControlPlane): { end(): number } {
  let lost = 0;
  let reader: ChildProcess | undefined;
  const read = (): void => {
    const path = `${pathOf(policies, {})}?watch=true&timeoutSeconds=3600`;
    reader = spawn(kubectl, ['--kubeconfig', kubeconfig, 'get', '--raw', path], { stdio: 'ignore' });
    reader.once('exit', () => {
      if (reader === undefined) return;
      lost += 1;
      read();
    });
  };
  read();
  return {
    end: () => {
      const last = reader;
      reader = undefined;
      last?.kill();
      return lost;
    },
  };
}
