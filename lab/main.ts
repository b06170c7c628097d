import { requireNode } from '../src/runtime/process/node-version.ts';

requireNode();
const { main } = await import('./commands.ts');
process.exitCode = await main(process.argv.slice(2));
