import { requireNode } from './runtime/process/node-version.ts';

requireNode();
// A reader that has seen enough (`sallyport crds | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
const { main } = await import('./commands.ts');
process.exitCode = await main(process.argv.slice(2));
