import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { must } from '../../lab/host/command.ts';
import { cacheFolder } from '../../lab/setup/parts.ts';

/** What a lab could leave behind on the machine, one line per fact. */
export type MachinePicture = ReadonlySet<string>;

/** Folders where programs of a cluster like to leave files, and how deep to look. */
const folders: readonly (readonly [string, number])[] = [
  ['/etc', 9],
  ['/run', 9],
  ['/var/lib', 3],
  ['/opt', 2],
  ['/mnt', 2],
  ['/srv', 2],
  [homedir(), 2],
];
/** What other programs of the machine change meanwhile: package manager, npm, Go and our own build cache. */
const others = [/^\/var\/lib\/(apt|dpkg)\//, new RegExp(`^${homedir()}/(\\.cache|\\.npm|go|\\.config)(/|$)`)];

/** Takes the picture: namespaces, links, rules, mounts, processes of lab programs, files. */
export async function takePicture(): Promise<MachinePicture> {
  const lines = async (what: string, ...argv: string[]) =>
    (await must(`list ${what}`, argv))
      .split('\n')
      .filter(Boolean)
      .map((line) => `${what}: ${line}`);
  const found = await Promise.all(
    folders.map(([folder, depth]) => must('list files', ['find', folder, '-xdev', '-maxdepth', `${depth}`])),
  );
  const files = found
    .join('')
    .split('\n')
    .filter((file) => file !== '' && !others.some((other) => other.test(file)));
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  return new Set([
    ...(await lines('namespace', 'ip', 'netns', 'list')),
    ...(await lines('link', 'ip', '-br', 'link')),
    ...(await lines('address', 'ip', '-br', 'address')),
    ...(await lines('rule', 'nft', 'list', 'ruleset')),
    ...mounts.map((mount) => `mount: ${mount}`),
    ...labProcesses(),
    ...files.map((file) => `file: ${file}`),
  ]);
}

/** What has come and gone between two pictures: empty if the machine is as before. */
export function changes(before: MachinePicture, after: MachinePicture): string[] {
  return [
    ...[...after.difference(before)].map((fact) => `+ ${fact}`),
    ...[...before.difference(after)].map((fact) => `- ${fact}`),
  ];
}

/** Processes of programs that only a lab runs. */
function labProcesses(): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const program = readlinkSync(`/proc/${pid}/exe`);
      if (program.startsWith(cacheFolder())) found.push(`process: ${pid} ${program}`);
    } catch {
      // The process has ended meanwhile, or is a kernel thread.
    }
  }
  return found;
}
