import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { cpus } from 'node:os';
import { basename, join } from 'node:path';
import { must, run } from '../host/command.ts';
import { BadInput, LabFailure } from '../host/failure.ts';
import { identify } from '../host/processes.ts';
import type { Progress } from '../host/progress.ts';
import { until } from '../host/wait.ts';
import { envoyProgram } from './envoy.ts';
import { builtFolder, cacheFolder, type kubePrograms, type Part, parts, sourceFolder } from './parts.ts';

/** Fixed for all builds: any other flag or variable would mean a second full build of Kubernetes. */
export const buildEnv = { CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' };
/** Where Debian puts it. */
const nginxProgram = '/usr/sbin/nginx';
const minimumGo = [1, 24] as const;
const buildLimitMs = 80 * 60_000;

/** The Go version of this machine, `go1.26.8`; a sentence that says what to do if there is none or it is too old. */
export async function goVersion(): Promise<string> {
  const finished = await run(['go', 'env', 'GOVERSION']).catch(() => undefined);
  const version = finished?.stdout.trim() ?? '';
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  const want = minimumGo.join('.');
  if (finished === undefined || major === undefined) throw new BadInput(`go is missing; install Go ${want} or newer`);
  if (Number(major) < minimumGo[0] || (Number(major) === minimumGo[0] && Number(minor) < minimumGo[1])) {
    throw new BadInput(`${version} is too old; install Go ${want} or newer`);
  }
  return version;
}

/** Builds every part that is not in the cache folder, side by side where there are cores for it. Safe to interrupt. */
export async function buildParts(progress: Progress): Promise<void> {
  const version = await goVersion();
  const missing = parts.filter((part) => !existsSync(builtFolder(part, version)));
  if (missing.length === 0) return;
  const minutes = missing.reduce((sum, part) => sum + part.firstBuildCoreMinutes, 0) / cpus().length;
  progress.line(
    `set-up: building ${missing.map((part) => part.title).join(', ')} from Go modules, once; ` +
      `about ${Math.max(1, Math.ceil(minutes))} min when nothing is cached, and it may be interrupted at any time`,
  );
  // Kubernetes takes longest and is linked on one core at its end; the others fill the second core meanwhile.
  const [longest, ...others] = missing.toSorted((a, b) => b.firstBuildCoreMinutes - a.firstBuildCoreMinutes);
  const lanes = [longest === undefined ? [] : [longest], others];
  const lane = async (inLane: readonly Part[]) => {
    for (const part of inLane) await buildPart(part, version, progress);
  };
  const outcomes = await Promise.allSettled(lanes.map(lane));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  dropOldBuilds();
}

async function buildPart(part: Part, version: string, progress: Progress): Promise<void> {
  const folder = builtFolder(part, version);
  const unfinished = `${folder}.${process.pid}.new`;
  const source = sourceFolder(part);
  await progress.step(`build ${part.title}`, async (update) => {
    await untilNobodyBuilds(folder, update);
    if (existsSync(folder)) return;
    mkdirSync(unfinished, { recursive: true });
    try {
      update('downloading modules');
      await must(`download the modules of ${part.title}`, ['go', 'mod', 'download'], {
        cwd: source,
        env: buildEnv,
        timeoutMs: buildLimitMs,
      });
      for (const [program, goPackage] of Object.entries(part.programs)) {
        const total = await stalePackages(source, goPackage);
        let done = 0;
        const argv = ['go', 'build', '-v', '-ldflags', part.linkerFlags, '-o', join(unfinished, program), goPackage];
        await must(`build ${part.title}`, argv, {
          cwd: source,
          env: buildEnv,
          timeoutMs: buildLimitMs,
          onStderrLine: () => {
            done += 1;
            update(done < total ? `${done} of ${total} packages` : 'linking');
          },
        });
        for (const link of part.links[program] ?? []) symlinkSync(program, join(unfinished, link));
      }
      // Two commands may have started in the same instant; either result is right.
      if (!existsSync(folder)) renameSync(unfinished, folder);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  });
}

/** Waits for another command that is building the same part on this machine. */
async function untilNobodyBuilds(folder: string, update: (note: string) => void): Promise<void> {
  const name = basename(folder);
  const builders = () =>
    readdirSync(cacheFolder())
      .filter((entry) => entry.startsWith(`${name}.`))
      .map((entry) => Number(entry.split('.')[1]))
      .filter((pid) => pid !== process.pid && identify(pid) !== undefined);
  mkdirSync(cacheFolder(), { recursive: true });
  await until({ what: `another command to build ${name}`, limitMs: buildLimitMs, everyMs: 500 }, () => {
    const [builder] = builders();
    if (builder !== undefined) update(`waiting for process ${builder}, which builds it already`);
    return builder === undefined;
  });
}

/** How many packages Go would compile now: an interrupted build goes on where it stopped. */
async function stalePackages(source: string, goPackage: string): Promise<number> {
  const argv = ['go', 'list', '-deps', '-f', '{{if .Stale}}x{{end}}', goPackage];
  const finished = await run(argv, { cwd: source, env: buildEnv, timeoutMs: 300_000 });
  return finished.stdout.split('\n').filter((line) => line === 'x').length;
}

/**
 * Removes builds that no tree of this machine has used for a month, and leftovers of builds that were killed. Younger
 * ones stay: another clone or a running lab may use them.
 */
function dropOldBuilds(): void {
  const ours = new RegExp(`^(${parts.map((part) => part.name).join('|')})-[0-9a-f]{16}(?:\\.(\\d+)\\.new)?$`);
  for (const name of readdirSync(cacheFolder())) {
    const match = ours.exec(name);
    if (match === null) continue;
    const full = join(cacheFolder(), name);
    const builder = match[2];
    const isOld = Date.now() - statSync(full).mtimeMs > 30 * 24 * 3600_000;
    const isLeftover = builder !== undefined && identify(Number(builder)) === undefined;
    if (isLeftover || (builder === undefined && isOld)) rmSync(full, { recursive: true, force: true });
  }
}

/**
 * Where the programs are, by name. The paths stay as they are now, even if the sources change while the caller lives.
 * Throws if set-up has not run; marks the builds as used.
 */
export async function programs(): Promise<Programs> {
  const version = await goVersion();
  const folders = new Map(parts.map((part) => [part.name, builtFolder(part, version)]));
  for (const [name, folder] of folders) {
    if (!existsSync(folder)) throw new LabFailure(`${name} is not built; run: bin/lab setup`);
    utimesSync(folder, new Date(), new Date());
  }
  const pathOf = (name: Part['name'], program: string) => join(folders.get(name) ?? '', program);
  return {
    shim: pathOf('shim', 'labshim'),
    coredns: pathOf('coredns', 'coredns'),
    helm: pathOf('helm', 'helm'),
    kubectl: pathOf('kube', 'kubectl'),
    loadgen: pathOf('loadgen', 'loadgen'),
    envoy: envoyProgram(),
    nginx: nginxProgram,
    kube: (program) => pathOf('kube', program),
  };
}

/** Paths of the programs that set-up has built or fetched. */
export interface Programs {
  readonly shim: string;
  readonly coredns: string;
  readonly helm: string;
  readonly kubectl: string;
  readonly loadgen: string;
  readonly envoy: string;
  readonly nginx: string;
  kube(program: (typeof kubePrograms)[number]): string;
}
