import { join } from 'node:path';
import { z } from 'zod';
import { type Finished, lastLines, must, run } from './host/command.ts';
import { BadInput, LabFailure } from './host/failure.ts';
import type { Instance } from './host/instance.ts';
import type { Progress } from './host/progress.ts';
import { until } from './host/wait.ts';
import { writeOwnImage } from './images.ts';
import { missingInRollout, partOfSallyport, type RolloutFacts, rolloutResources } from './rollout.ts';
import type { Programs } from './setup/go-build.ts';
import { kubeconfigOf, kubectlOf } from './up.ts';

/** The release of the chart in a lab, and its namespace. */
export const release = { name: 'sallyport', namespace: 'sallyport' } as const;

/** The chart of the working tree. */
export const chartFolder = join(import.meta.dirname, '..', 'charts', 'sallyport');

export interface InstallRequest {
  readonly instance: Instance;
  readonly programs: Programs;
  /** `key=value` as helm's --set takes them. What is not named here has its default, also in an upgrade. */
  readonly set: readonly string[];
  readonly progress: Progress;
  /** How long the roll-out may take; two minutes when absent. */
  readonly rolloutLimitMs?: number;
}

const helmLimitMs = 400_000;
const defaultRolloutLimitMs = 120_000;

/**
 * Installs the chart of the working tree, or upgrades to it, and returns when it is in service. Values that the chart
 * refuses are BadInput with helm's own words; a roll-out that does not end is a LabFailure that says what is missing.
 */
export async function install(request: InstallRequest): Promise<void> {
  const { instance, programs, set, progress, rolloutLimitMs: limitMs = defaultRolloutLimitMs } = request;
  const target = [release.name, chartFolder, '--namespace', release.namespace];
  const values = set.flatMap((pair) => ['--set', pair]);
  const rendered = await helm(instance, programs, ['template', ...target, ...values]);
  if (rendered.code !== 0) throw new BadInput(`the chart cannot be installed like this: ${saidBy(rendered)}`);
  const digest = await progress.step('image', () => writeOwnImage(instance, programs));
  await progress.step('helm upgrade --install', async () => {
    // The digest makes a roll-out of every change of the sources, as a new image would; the proxies' have the same sources.
    const images = ['image', 'operator.images.envoy', 'operator.images.nginx'];
    const image = images.flatMap((each) => ['--set', `${each}.digest=${digest}`]);
    const upgrade = ['upgrade', '--install', '--reset-values', '--create-namespace', ...target, ...image, ...values];
    const upgraded = await helm(instance, programs, upgrade);
    if (upgraded.code !== 0) throw new LabFailure(`helm could not install the chart: ${saidBy(upgraded)}`);
  });
  await progress.step('roll-out', async (update) => {
    const facts = factsOf(instance, programs);
    let missing: readonly string[] = [];
    const explain = () => missing.join('\n');
    await until({ what: 'the roll-out', limitMs, everyMs: 300, explain }, async () => {
      missing = await missingInRollout(facts);
      update(missing[0] ?? 'complete');
      return missing.length === 0;
    });
  });
}

/** Runs helm in a lab, whatever its exit code. */
function helm(instance: Instance, programs: Programs, args: readonly string[]): Promise<Finished> {
  return run([programs.helm, ...args], { env: helmEnv(instance), timeoutMs: helmLimitMs });
}

/** The environment of helm for a lab: what helm keeps on disk is in the lab's folder, not in the user's home. */
export function helmEnv(instance: Instance): Readonly<Record<string, string>> {
  const home = join(instance.folder, 'helm');
  return {
    KUBECONFIG: kubeconfigOf(instance),
    HELM_KUBECONTEXT: '',
    HELM_CACHE_HOME: join(home, 'cache'),
    HELM_CONFIG_HOME: join(home, 'config'),
    HELM_DATA_HOME: join(home, 'data'),
  };
}

const saidBy = ({ stderr }: Finished): string => lastLines(stderr.trim().replace(/^Error: /, ''));

function factsOf(instance: Instance, programs: Programs): RolloutFacts {
  const kubectl = [...kubectlOf(instance, programs), '--namespace', release.namespace];
  return {
    async objects() {
      const read = async (...what: readonly string[]) => {
        const text = await must('read what was installed', [...kubectl, 'get', ...what, '--output', 'json']);
        return z.object({ items: z.array(z.unknown()) }).parse(JSON.parse(text)).items;
      };
      // Leases are made by our programs and have no label of ours; there are no others in the namespace.
      return [...(await read(rolloutResources, '--selector', partOfSallyport)), ...(await read('leases'))];
    },
    async lastWords(pod, ofRunBefore) {
      const { stdout } = await run([...kubectl, 'logs', pod, '--tail=1', `--previous=${ofRunBefore}`]);
      return stdout.trim();
    },
  };
}
