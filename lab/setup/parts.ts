import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A part is a Go module of ours that is built once and kept in the user's cache folder. */
export interface Part {
  readonly name: 'kube' | 'shim' | 'coredns' | 'helm' | 'loadgen';
  readonly title: string;
  /** Other parts whose packages it imports: they are part of its sources. */
  readonly uses: readonly Part['name'][];
  /** Program in the cache folder -> Go package it is built from. */
  readonly programs: Readonly<Record<string, string>>;
  /** Other names of a program that looks at its own name (multi-call). */
  readonly links: Readonly<Record<string, readonly string[]>>;
  readonly linkerFlags: string;
  /** Processor time of a first build on one core, measured on 2026-11-15; the estimate is made of it. */
  readonly firstBuildCoreMinutes: number;
}

const kubernetesVersion = 'v1.36.3';
const versionFlags = ['gitVersion=v1.36.3', 'gitMajor=1', 'gitMinor=36', 'gitTreeState=clean']
  .flatMap((pair) => ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].map((at) => `-X ${at}.${pair}`))
  .join(' ');

/** The names under which the multi-call binary of lab/kube is started. */
export const kubePrograms = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubelet',
] as const;

export const parts: readonly Part[] = [
  {
    name: 'shim',
    title: 'container shim',
    uses: [],
    programs: { labshim: '.' },
    links: {},
    linkerFlags: '-s -w',
    firstBuildCoreMinutes: 0.3,
  },
  {
    name: 'kube',
    title: `Kubernetes ${kubernetesVersion.slice(1)}`,
    uses: ['shim'],
    programs: { kube: '.', kubectl: './kubectl' },
    links: { kube: kubePrograms },
    linkerFlags: `-s -w ${versionFlags}`,
    firstBuildCoreMinutes: 14,
  },
  {
    name: 'coredns',
    title: 'CoreDNS 1.15',
    uses: [],
    programs: { coredns: '.' },
    links: {},
    linkerFlags: '-s -w',
    firstBuildCoreMinutes: 3,
  },
  {
    name: 'helm',
    title: 'helm 4.3',
    uses: [],
    programs: { helm: 'helm.sh/helm/v4/cmd/helm' },
    links: {},
    linkerFlags: '-s -w',
    firstBuildCoreMinutes: 5,
  },
  {
    name: 'loadgen',
    title: 'load generator',
    uses: [],
    programs: { loadgen: '.' },
    links: {},
    linkerFlags: '-s -w',
    firstBuildCoreMinutes: 0.2,
  },
];

const labFolder = join(import.meta.dirname, '..');

/** Where the sources of a part are. */
export function sourceFolder(part: Part): string {
  return join(labFolder, part.name);
}

/** Where what is built once is kept: never in the tree, so that a fresh clone on the same machine starts at once. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sallyport');
}

/** The folder that holds the programs of a part; its name is a key of the sources, so it is right or absent. */
export function builtFolder(part: Part, goVersion: string): string {
  const hash = createHash('sha256').update(JSON.stringify([part, goVersion, process.arch]));
  for (const file of [part.name, ...part.uses].flatMap((name) => goFiles(join(labFolder, name)))) {
    hash.update(file.path).update('\0').update(readFileSync(file.full));
  }
  return join(cacheFolder(), `${part.name}-${hash.digest('hex').slice(0, 16)}`);
}

function goFiles(folder: string): { path: string; full: string }[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.go$|(^|\/)go\.(mod|sum)$/.test(path) && !path.endsWith('_test.go'))
    .sort()
    .map((path) => ({ path, full: join(folder, path) }));
}
