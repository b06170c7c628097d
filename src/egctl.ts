import packageJson from '../package.json' with { type: 'json' };
import { requireNode } from './runtime/process/node-version.ts';

requireNode();
// A reader that has seen enough (`egctl status | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
const { main } = await import('./cli/commands.ts');
// The scripts in bin/ say first under which name they were started.
const [name = 'egctl', ...argv] = process.argv.slice(2);
process.exitCode = await main({ name, version: packageJson.version }, argv, {
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
  hasColours: process.stdout.isTTY === true && process.stdout.hasColors(),
});
