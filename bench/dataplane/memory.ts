/**
 * How much memory the core of an agent takes: the views of all objects, the planner, and a table in force. It is measured
 * in a process of its own, bundled as it ships, that reads the objects one by one as an informer does. The API client,
 * metrics and the log of the whole agent come on top.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { must } from '../../lab/host/command.ts';
import type { ApiObject, PodObject } from '../../src/core/project/index.ts';
import type { World } from '../../src/core/testing/world.ts';

/** One object on its way to the process. */
export type Line =
  | { readonly kind: 'policy' | 'tunnel' | 'namespace' | 'clusterInfo'; readonly object: ApiObject }
  | { readonly kind: 'pod'; readonly object: PodObject };

/** RSS in MB of a process that has applied a world with these pods to the namespace of a worker. */
export async function rssMbOf(namespace: string, world: World, pods: readonly PodObject[]): Promise<number> {
  const all = (kind: Exclude<Line['kind'], 'pod'>, objects: Iterable<ApiObject>): Line[] =>
    [...objects].map((object) => ({ kind, object }));
  const lines: readonly Line[] = [
    ...all('policy', world.policies.values()),
    ...all('tunnel', world.tunnels.values()),
    ...all('namespace', world.namespaces.values()),
    ...all('clusterInfo', world.clusterInfo === undefined ? [] : [world.clusterInfo]),
    ...pods.map((object): Line => ({ kind: 'pod', object })),
  ];
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  try {
    const program = join(folder, 'memory.mjs');
    await build({
      entryPoints: [join(import.meta.dirname, 'memory-process.ts')],
      outfile: program,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node26',
      logLevel: 'silent',
    });
    const input = lines.map((line) => JSON.stringify(line)).join('\n');
    return Number(await must('measure memory', [process.execPath, program, namespace], { input }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
