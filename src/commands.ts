/** The one program of Sallyport: its first argument says which part of it runs. Mains are loaded when they are needed. */
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { type AgentFlags, agentDefaults, readAgentFlags } from './agent/flags.ts';
import { EgressError } from './api/error.ts';
import { type ControllerFlags, controllerDefaults, readFlags } from './controller/flags.ts';
import type { AwaitCleanOptions } from './removal/main.ts';
import { type ExitCode, exitCodes } from './runtime/process/lifecycle.ts';

/** Runs one command line and returns the exit code; a command line that cannot be understood is one sentence and 2. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('sallyport')
    .description('The way out of a Kubernetes cluster.')
    .version(packageJson.version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sallyport: ')) })
    .helpCommand(false);
  let exitCode: ExitCode = exitCodes.stopped;
  program
    .command('crds')
    .description('print the CustomResourceDefinitions, to be applied with kubectl apply --server-side -f -')
    .action(async () => {
      const { crdOf } = await import('./api/crd.ts');
      const { isKindName, kinds } = await import('./api/kinds.ts');
      const list = { apiVersion: 'v1', kind: 'List', items: Object.keys(kinds).filter(isKindName).map(crdOf) };
      process.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
    });
  program
    .command('controller')
    .description('decide who leaves the cluster with which address, and answer admission reviews')
    .option('--config <file>', 'configuration file; the defaults without one')
    .option('--kubeconfig <file>', 'how to reach the API server; else the service account of the pod, or KUBECONFIG')
    .option('--health-address <address>', 'where to serve health and metrics', controllerDefaults.healthAddress)
    .option('--webhook-address <address>', 'where to serve admission webhooks', controllerDefaults.webhookAddress)
    .option('--webhook-url <url>', 'how the API server reaches the webhooks of a process outside the cluster')
    .option(
      '--namespace <name>',
      `where the lease and the certificates live (POD_NAMESPACE, else ${controllerDefaults.namespace})`,
    )
    .option('--log-level <level>', 'debug, info, warn, error, fatal or silent', controllerDefaults.logLevel)
    .action(async (flags: ControllerFlags) => {
      const options = readFlags(flags, process.env);
      const { runController } = await import('./controller/main.ts');
      await runController(options, packageJson.version, process);
    });
  program
    .command('agent')
    .description('make the kernel of this node send pods out with their EIPs')
    .option('--node-name <name>', 'name of the Node that the agent runs on (NODE_NAME)')
    .option('--config <file>', 'configuration file; the defaults without one')
    .option('--kubeconfig <file>', 'how to reach the API server; else the service account of the pod, or KUBECONFIG')
    .option('--health-address <address>', 'where to serve health, metrics and /kernel', agentDefaults.healthAddress)
    .option('--state-folder <folder>', 'for what must survive a restart, but not a reboot', agentDefaults.stateFolder)
    .option('--sysctl-root <folder>', 'where the kernel settings of the node are', agentDefaults.sysctlRoot)
    .option('--log-level <level>', 'debug, info, warn, error, fatal or silent', agentDefaults.logLevel)
    .option('--clean', 'take everything of Sallyport off the node and end; needs no API server')
    .action(async (flags: AgentFlags) => {
      const options = readAgentFlags(flags, process.env);
      const { runAgent, runClean } = await import('./agent/main.ts');
      if (flags.clean) exitCode = await runClean(options);
      else await runAgent(options, packageJson.version, process);
    });
  program
    .command('await-clean')
    .description('wait until the agents have taken everything off their nodes; the last step of an uninstallation')
    .requiredOption('--daemonset <name>', 'the DaemonSet whose pods clean')
    .option('--namespace <name>', 'where it is (POD_NAMESPACE)', process.env.POD_NAMESPACE ?? 'default')
    .option('--limit <seconds>', 'how long to wait', Number, 240)
    .option('--kubeconfig <file>', 'how to reach the API server; else the service account of the pod, or KUBECONFIG')
    .action(async (flags: AwaitCleanOptions) => {
      const { runAwaitClean } = await import('./removal/main.ts');
      exitCode = await runAwaitClean(flags, packageJson.version);
    });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.stopped : exitCodes.badInput;
    if (error instanceof EgressError) {
      process.stderr.write(`sallyport: ${error.message}\n`);
      return exitCodes.badInput;
    }
    throw error;
  }
}
