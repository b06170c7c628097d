/**
 * What an agent costs on its node: the program of the image beside an API server in memory that holds 5,000 policies and
 * 100 pods of the node, with the kernel of a network namespace. Memory and idle processor time, how long its start takes,
 * and how long a pod and a policy take from the API server to the kernel. Limits instead of a baseline.
 *
 *   node bench/agent.ts [--policies 5000] [--pods 100] [--eips 40] [--idle-seconds 60] [--node-options '...']
 *     [--role alone|worker|witness|gateway] [--map]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { interruptible } from '../lab/host/interrupt.ts';
import { progressOn } from '../lab/host/progress.ts';
import { enter, makeSite, removeLeftSites, type Site } from './dataplane/site.ts';

const progress = progressOn(process.stderr);
let site: Site | undefined;
const cleanUp = async () => site?.remove();
await interruptible(
  () => run().finally(cleanUp),
  cleanUp,
  () => progress.line('interrupted: removing the namespaces'),
);

/** Everything that is measured talks over the loopback of the node, so the measuring happens inside of it. */
async function run(): Promise<void> {
  await removeLeftSites();
  site = await makeSite('agent');
  const argv = process.argv.slice(2);
  const inside = [process.execPath, join(import.meta.dirname, 'agent', 'inside.ts'), ...argv];
  const [program = '', ...args] = [
    ...enter(site.namespaceOf(argv.includes('gateway') ? 'gateway' : 'worker')),
    ...inside,
  ];
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
}
