/** The one program of Sallyport: its first argument says which part of it runs. Mains are loaded when they are needed. */
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
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
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCodes.stopped;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.stopped : exitCodes.badInput;
    throw error;
  }
}
