import { join } from 'node:path';
import { run } from '../host/command.ts';
import type { Lab } from '../lab.ts';
import { type Tell, Unexpected } from './scenario.ts';

const root = join(import.meta.dirname, '..', '..');

/** Shows a command and does it with the programs of the lab; what it prints is shown too. Any failure is unexpected. */
export async function type(lab: Lab, tell: Tell, line: string): Promise<string> {
  tell.typed(line);
  const [program = '', ...words] = line.split(' ');
  const args = words.map((word) => (word.startsWith('lab/') ? join(root, word) : word));
  const finished =
    program === 'kubectl'
      ? await lab.tryKubectl(args)
      : await run([join(root, program), ...args], { env: { KUBECONFIG: lab.kubeconfig } });
  tell.printed(finished.stdout.trimEnd());
  if (finished.code !== 0) {
    throw new Unexpected(
      `${line} ended with code ${finished.code}: ${finished.stderr.trim() || finished.stdout.trim()}`,
    );
  }
  return finished.stdout;
}
