/** The guard against an old Node.js: without it a wrong PATH shows up as a puzzling error much later. */
import { EgressError } from '../../api/error.ts';

/** The oldest major version that runs our code: it strips types by default and has what undici 8 needs. */
export const minimumNodeMajor = 24;

/**
 * Throws NODE_TOO_OLD when this Node.js is older than `minimumNodeMajor`. Call it first in every main.
 * It speaks in bundles; unbuilt, Node.js below 22 cannot even load a .ts file, so the scripts in bin/ guard it there.
 */
export function requireNode(version: string = process.versions.node): void {
  const major = Number.parseInt(version, 10);
  if (major >= minimumNodeMajor) return;
  throw new EgressError(
    'NODE_TOO_OLD',
    `Node.js ${version} is too old: Sallyport needs ${minimumNodeMajor} or newer. Run "make setup" and start it with node_modules/.bin/node.`,
    { data: { version, minimumNodeMajor } },
  );
}
