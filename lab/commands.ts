import { spawn } from 'node:child_process';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { controlPlaneParts } from './cluster/control-plane.ts';
import { type Family, families, mostNodes, type ProxyMode, proxyModes, shapeOf } from './cluster/shape.ts';
import { removeStale, takeDown } from './down.ts';
import { BadInput, LabFailure } from './host/failure.ts';
import { instanceOf, stateOf } from './host/instance.ts';
import { interruptible } from './host/interrupt.ts';
import { identify } from './host/processes.ts';
import { type Progress, progressOn } from './host/progress.ts';
import { install } from './install.ts';
import { runningLab } from './lab.ts';
import { controlPlane, inNamespace, outside } from './net/fabric.ts';
import { restartPart } from './parts.ts';
import { type PoweredLab, power, powerActions } from './power.ts';
import { programs } from './setup/go-build.ts';
import { requireRoot } from './setup/machine.ts';
import { setUp } from './setup/setup.ts';
import { statusOf, statusText } from './status.ts';
import { bringUp, kubeconfigOf, requireFree } from './up.ts';

/** Runs one command line and returns the exit code: 0 done, 1 something failed, 2 the command cannot be done as asked. */
export async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = commandLine((code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    return exitCodeOf(error);
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof BadInput) {
    process.stderr.write(`lab: ${error.message}\n`);
    return 2;
  }
  if (error instanceof LabFailure) {
    process.stderr.write(`lab: ${error.message}\n${error.detail === '' ? '' : `${error.detail}\n`}`);
    return 1;
  }
  throw error;
}

const nameOption = [
  '--name <instance>',
  'name of the lab; two labs of different names do not see each other',
  'lab',
] as const;

function commandLine(setExitCode: (code: number) => void): Command {
  const progress = progressOn(process.stderr);
  const lab = new Command('lab')
    .description('A real Kubernetes on one machine: nodes and pods are network namespaces. See lab/README.md.')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'lab: ')) })
    .helpCommand(false);

  lab
    .command('setup')
    .description('install and build what the lab needs; does only what is missing')
    .action(async () => {
      await setUp(progress);
      progress.line('set-up: complete');
    });

  lab
    .command('up')
    .description('start a lab: 2 gateway nodes (label egress=true), 2 workers, the outside')
    .option(...nameOption)
    .option('--gateways <n>', 'number of gateway nodes', wholeNumber, 2)
    .option('--workers <n>', 'number of other nodes', wholeNumber, 2)
    .addOption(new Option('--family <family>', 'a cluster of one address family; both when absent').choices(families))
    .option(
      '--proxy-mode <node=mode>',
      'kube-proxy mode of a node: nftables (default) or iptables; repeatable',
      proxyMode,
      [],
    )
    .option('--owner <pid>', 'remove the lab with the next lab command once this process is gone', wholeNumber)
    .action((options: UpOptions) => up(options, progress));

  lab
    .command('down')
    .description('remove a lab completely; no error if there is none')
    .option(...nameOption)
    .action(async (options: { name: string }) => {
      requireRoot();
      const instance = instanceOf(options.name);
      if (stateOf(instance) === 'busy') throw new BadInput(`another command is at work on lab "${instance.name}"`);
      await progress.step(`take lab "${instance.name}" down`, () => takeDown(instance));
    });

  lab
    .command('install')
    .description("install the working tree's chart into a lab with helm, or upgrade to it, and wait until it is ready")
    .option(...nameOption)
    .option('--set <key=value>', 'a value of the chart, as with helm; repeatable', repeated, [])
    .action(async (options: { name: string; set: string[] }) => {
      requireRoot();
      const { instance } = runningLab(options.name);
      await install({ instance, programs: await programs(), set: options.set, progress });
    });

  lab
    .command('status')
    .description('show the nodes, free EIPs and the outside server of a lab')
    .option(...nameOption)
    .option('--json', 'print it as JSON')
    .action((options: { name: string; json?: true }) => {
      const { instance, record, shape } = runningLab(options.name);
      process.stdout.write(
        options.json
          ? `${JSON.stringify(statusOf(shape), null, 2)}\n`
          : statusText(instance.name, shape, record, kubeconfigOf(instance)),
      );
    });

  lab
    .command('kubeconfig')
    .description('print the path of a kubeconfig that plain kubectl can use')
    .option(...nameOption)
    .action((options: { name: string }) => {
      process.stdout.write(`${kubeconfigOf(runningLab(options.name).instance)}\n`);
    });

  lab
    .command('exec')
    .description('run a command in the network namespace of a node (also: control-plane, outside)')
    .usage('[options] <node> -- <command...>')
    .argument('<node>')
    .argument('<command...>')
    .option(...nameOption)
    .action(async (node: string, command: string[], options: { name: string }) => {
      requireRoot();
      const { instance, shape } = runningLab(options.name);
      const members = [...shape.nodes.map((member) => member.name), controlPlane.name, outside.name];
      if (!members.includes(node)) {
        throw new BadInput(`lab "${instance.name}" has no node ${JSON.stringify(node)}; it has ${members.join(', ')}`);
      }
      setExitCode(await interactive(inNamespace(instance, node, command)));
    });

  const node = lab.command('node').description('switch a node off or on, reboot it, or let it hang');
  const meaning = {
    off: 'unplug the cable, then stop every process of the node',
    on: 'start a node that is off, or continue one that hangs',
    hang: 'stop every process of the node; its kernel and its cable keep working',
    reboot: 'kill every process, drop all kernel state, start the node again',
  };
  for (const action of powerActions) {
    node
      .command(action)
      .description(meaning[action])
      .argument('<node>')
      .option(...nameOption)
      .action(async (name: string, options: { name: string }) => {
        requireRoot();
        const target = runningLab(options.name);
        const powered: PoweredLab = { ...target, programs: await programs() };
        await progress.step(`node ${name} ${action}`, () => power(action, name, powered));
      });
  }

  lab
    .command('restart')
    .description('kill a part of the control plane (SIGKILL) and start it again')
    .argument('<part>', `one of ${controlPlaneParts.join(', ')}`)
    .option(...nameOption)
    .action(async (part: string, options: { name: string }) => {
      requireRoot();
      const known = controlPlaneParts.find((candidate) => candidate === part);
      if (known === undefined) {
        throw new BadInput(`there is no part ${JSON.stringify(part)}; the parts are ${controlPlaneParts.join(', ')}`);
      }
      const { instance, record } = runningLab(options.name);
      const built = await programs();
      await progress.step(`restart ${part}`, () => restartPart(instance, record, known, built));
    });
  return lab;
}

interface UpOptions {
  readonly name: string;
  readonly gateways: number;
  readonly workers: number;
  readonly family?: Family;
  readonly proxyMode: readonly (readonly [string, ProxyMode])[];
  readonly owner?: number;
}

async function up(options: UpOptions, progress: Progress): Promise<void> {
  requireRoot();
  const instance = instanceOf(options.name);
  if (options.gateways + options.workers > mostNodes) throw new BadInput(`a lab has at most ${mostNodes} nodes`);
  const { gateways, workers, family } = options;
  const only = family === undefined ? {} : { families: [family] };
  const shape = shapeOf({ gateways, workers, ...only, proxyModeByNode: new Map(options.proxyMode) });
  const stranger = options.proxyMode.find(([name]) => !shape.nodes.some((node) => node.name === name));
  if (stranger !== undefined)
    throw new BadInput(`--proxy-mode names node ${JSON.stringify(stranger[0])}, which is not in the lab`);
  const owner = options.owner === undefined ? undefined : identify(options.owner);
  if (options.owner !== undefined && owner === undefined)
    throw new BadInput(`--owner ${options.owner}: no such process`);
  requireFree(instance);

  const built = await setUp(progress);
  for (const name of await removeStale()) progress.line(`  removed what was left of lab "${name}"`);
  const request = { instance, shape, programs: built, progress, ...(owner === undefined ? {} : { owner }) };
  await interruptible(
    () => bringUp(request),
    () => takeDown(instance),
    (signal) => progress.line(`  ${signal}: taking lab "${instance.name}" down`),
  );
  progress.line(
    `lab "${instance.name}" is up; use it with: export KUBECONFIG=$(bin/lab kubeconfig --name ${instance.name})`,
  );
}

function interactive(argv: readonly string[]): Promise<number> {
  const [program = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Use a whole number, 0 or more.');
  return Number(text);
}

function repeated(text: string, before: string[]): string[] {
  return [...before, text];
}

function proxyMode(text: string, before: [string, ProxyMode][]): [string, ProxyMode][] {
  const [node = '', mode] = text.split('=');
  const known = proxyModes.find((candidate) => candidate === mode);
  if (node === '' || known === undefined) throw new InvalidArgumentError(`Use NODE=${proxyModes.join(' or NODE=')}.`);
  return [...before, [node, known]];
}
