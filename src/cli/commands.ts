/** egctl: reads its command line, asks the cluster, prints the answer. Only `vip move` and `drain` change something. */
import { Command, CommanderError, Option } from 'commander';
import { EgressError } from '../api/error.ts';
import { ApiError } from '../runtime/kube/api-error.ts';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { loadAccess } from '../runtime/kube/load-access.ts';
import { systemClock, withLimit } from '../runtime/process/clock.ts';
import { askStatus, askWhy, type Cluster, drainNode, type MoveReport, moveVip, Unanswered } from './answers.ts';
import type { DrainReport } from './drain.ts';
import type { MoveQuestion } from './move.ts';
import { statusText } from './status-text.ts';
import { coloured, type Paint, plain, printable } from './text.ts';
import { whyText } from './why-text.ts';

/** What the exit code of a command means. */
export const exitCodes = {
  /** It was answered, and everything is fine. */
  fine: 0,
  /** It was answered, and something is not fine. */
  notFine: 1,
  /** It could not be answered. */
  unanswered: 2,
} as const;

/** The program itself. */
export interface Program {
  /** What the user has typed: `egctl` or `kubectl egress`. */
  readonly name: string;
  readonly version: string;
}

/** Where a command writes. */
export interface Terminal {
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  /** Whether somebody can see colours. */
  readonly hasColours: boolean;
}

interface Flags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output: 'text' | 'json';
}
interface WhyFlags extends Flags {
  readonly namespace?: string;
  readonly to?: string;
}

/** Runs one command line and returns the exit code. */
export async function main(self: Program, argv: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = exitCodes.fine;
  const answer = async <T extends CommandReport>(flags: Flags, ask: Ask<T>, text: Text<T>): Promise<void> => {
    const report = await inCluster(self, flags, ask);
    const paint = terminal.hasColours ? coloured : plain;
    const lines = flags.output === 'json' ? [JSON.stringify(report, null, 2)] : text(report, paint);
    terminal.write(`${lines.join('\n')}\n`);
    exitCode = report.isFine ? exitCodes.fine : exitCodes.notFine;
  };
  try {
    await commandLine(self, terminal, answer).parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.fine : exitCodes.unanswered;
    if (!(error instanceof Unanswered || error instanceof EgressError || error instanceof ApiError)) throw error;
    terminal.writeError(`${self.name}: ${printable(error.message)}\n`);
    return exitCodes.unanswered;
  }
}

interface CommandReport {
  readonly isFine: boolean;
}
type Ask<T> = (cluster: Cluster) => Promise<T>;
type Text<T> = (report: T, paint: Paint) => readonly string[];

function commandLine(
  { name, version }: Program,
  terminal: Terminal,
  answer: <T extends CommandReport>(flags: Flags, ask: Ask<T>, text: Text<T>) => Promise<void>,
): Command {
  const program = new Command(name)
    .description('Inspects Sallyport, the egress gateway and proxy of a Kubernetes cluster, and moves EIPs.')
    .version(version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: terminal.write,
      writeErr: terminal.writeError,
      outputError: (text, write) => write(text.replace(/^error: /, `${name}: `)),
    })
    .helpCommand(false)
    .addHelpText('after', '\nExit codes: 0 everything is fine, 1 something is not fine, 2 the command cannot answer.');
  const command = (usage: string, description: string, parent = program): Command =>
    parent
      .command(usage)
      .description(description)
      .option('--kubeconfig <file>', 'kubeconfig file; default: KUBECONFIG, then ~/.kube/config')
      .option('--context <name>', 'context of the kubeconfig; default: its current one')
      .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  command('status', 'show programs, gateways, policies and nodes, and each problem with its remedy').action(
    (flags: Flags) => answer(flags, askStatus, statusText),
  );
  command('why', 'explain how traffic of a pod leaves the cluster, and check what the kernels hold')
    .argument('<pod>', 'POD, NAMESPACE/POD, or a workload such as deploy/NAME')
    .option('-n, --namespace <name>', 'namespace of the pod; default: that of the context')
    .option(
      '--to <address>',
      'one destination; default: every set of destinations that the policies of the pod treat alike',
    )
    .action((pod: string, flags: WhyFlags) =>
      answer(flags, (cluster) => askWhy(cluster, { pod, namespace: flags.namespace, to: flags.to }), whyText),
    );
  const vip = program.command('vip').description('commands for one EIP').helpCommand(false);
  command('move', 'move an EIP, with all policies that leave with it, to another node of its gateway', vip)
    .requiredOption('--egressGatewayName <name>', 'the EgressGateway that the EIP belongs to')
    .requiredOption(
      '--vip <address>',
      'the EIP (of a pair, either address), or a node of the gateway whose own address policies leave with',
    )
    .requiredOption('--targetNode <name>', 'a node that the gateway selects')
    .action((flags: Flags & MoveQuestion) => answer(flags, (cluster) => moveVip(cluster, flags), moveText));
  const node = '<node>';
  command('drain', 'move the EIPs of a node to other nodes, and assign it no new ones until undrain')
    .argument(node, 'name of the Node')
    .action((name: string, flags: Flags) => answer(flags, (cluster) => drainNode(cluster, name, true), drainText));
  command('undrain', 'let a node carry EIPs again; none moves back by itself')
    .argument(node, 'name of the Node')
    .action((name: string, flags: Flags) => answer(flags, (cluster) => drainNode(cluster, name, false), drainText));
  return program;
}

const drainText = ({ node, isDraining, remaining }: DrainReport, paint: Paint): string[] => {
  if (remaining !== undefined) return [paint(`Node ${node} is draining, but ${remaining}.`, 'bad')];
  return [isDraining ? `Node ${node} carries no EIPs and gets no new ones.` : `Node ${node} may carry EIPs again.`];
};

const moveText = ({ vip, to, policies, wasThere, remaining }: MoveReport, paint: Paint): string[] => {
  const what = `${vip}, with ${policies} ${policies === 1 ? 'policy' : 'policies'},`;
  if (remaining !== undefined) return [paint(`${what} is moving to ${to}, but ${remaining}.`, 'bad')];
  return [`${what} is ${wasThere ? 'already' : 'now'} on ${to}.`];
};

// Each call has a limit of its own; this one is for all of them together.
const limitMs = 60_000;

async function inCluster<T>({ version }: Program, { kubeconfig, context }: Flags, ask: Ask<T>): Promise<T> {
  const access = await loadAccess({ path: kubeconfig, context });
  const userAgent = `egctl/${version}`;
  const client = createKubeClient({ access, userAgent, clock: systemClock, random: Math.random });
  const error = () => new Unanswered(`The cluster did not answer within ${limitMs / 1000} s.`);
  try {
    return await withLimit(systemClock, { ms: limitMs, error }, (signal) =>
      ask({ client, namespace: access.namespace, signal }),
    );
  } finally {
    await client.close();
  }
}
