import { requireNode } from '../src/runtime/process/node-version.ts';

requireNode();
const { demo } = await import('./scenarios/demo.ts');
process.exitCode = await demo();
