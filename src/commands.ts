/** The one program of Sallyport: its first argument says which part of it runs. Mains are loaded when they are needed. */
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { EgressError } from './api/error.ts';
import { type ControllerFlags, controllerDefaults, readFlags } from './controller/flags.ts';
import { exitCodes } from './runtime/process/lifecycle.ts';

/** Runs one command line and returns the exit code; a command line that cannot be understood is one sentence and 2. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('sallyport')
    .description('The way out of a Kubernetes cluster.')
    .version(packageJson.version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sallyport: ')) })
    .helpCommand(false);
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
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCodes.stopped;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.stopped : exitCodes.badInput;
    if (error instanceof EgressError) {
      process.stderr.write(`sallyport: ${error.message}\n`);
      return exitCodes.badInput;
    }
    throw error;
  }
}
