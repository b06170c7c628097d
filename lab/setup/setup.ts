import type { Progress } from '../host/progress.ts';
import { installPackages } from './debian.ts';
import { fetchEnvoy } from './envoy.ts';
import { buildParts, goVersion, type Programs, programs } from './go-build.ts';
import { requireKernel, requireRoot } from './machine.ts';

/**
 * Makes the machine ready for the lab: root, Go, Debian packages, kernel, Envoy, Kubernetes and friends. Does only what is
 * missing; every step can be interrupted and run again. (The npm packages and Node 26 come before, tools/bootstrap.sh.)
 */
export async function setUp(progress: Progress): Promise<Programs> {
  requireRoot();
  await goVersion();
  await installPackages(progress);
  await requireKernel();
  await fetchEnvoy(progress);
  await buildParts(progress);
  return programs();
}
