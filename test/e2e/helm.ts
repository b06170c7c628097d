import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { type Finished, run } from '../../lab/host/command.ts';
import { chartFolder, release } from '../../lab/install.ts';
import type { Programs } from '../../lab/setup/go-build.ts';

/** As much of a rendered object as all tests need. */
const Rendered = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
});
export type Rendered = Readonly<z.infer<typeof Rendered>>;

/** Helm with a home of its own, as the user's plugins and repositories must not matter. */
export interface Helm {
  /** Runs helm whatever its exit code. */
  run(...args: readonly string[]): Promise<Finished>;
  /** The objects of the chart with these `key=value` settings; throws with helm's words if it refuses. */
  render(...set: readonly string[]): Promise<Rendered[]>;
  close(): void;
}

/** Opens helm for a cluster. */
export function openHelm(programs: Programs, kubeconfig: string): Helm {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-helm-'));
  const env = { KUBECONFIG: kubeconfig, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home };
  const helm = (...args: readonly string[]) => run([programs.helm, ...args], { env });
  return {
    run: helm,
    async render(...set) {
      const target = [release.name, chartFolder, '--namespace', release.namespace, '--kube-version', '1.36.3'];
      const { code, stdout, stderr } = await helm('template', ...target, ...set.flatMap((pair) => ['--set', pair]));
      if (code !== 0) throw new Error(stderr);
      return parseAllDocuments(stdout)
        .map((document) => document.toJS())
        .filter((object) => object !== null)
        .map((object) => Rendered.parse(object));
    },
    close: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** The one object of that kind and name; throws if it is not there. */
export function objectOf(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`the chart renders no ${kind} ${name}`);
  return found;
}
