import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must, run } from '../host/command.ts';
import { type Instance, labsFolder, removeIfEmpty } from '../host/instance.ts';

/** Network namespaces by name, as `ip netns` keeps them: a person can use `ip netns exec` on them. */
const namespaceFolder = '/run/netns';
/** Stands in the labs' folder when it was us who made `ip netns` mount its folder, so that we can undo it. */
const mountMarker = join(labsFolder, '.made-netns-mount');

/** The namespace of one member: `sp.INSTANCE.MEMBER`. Neither part may hold a dot, so names never clash. */
export function namespaceName(instance: Instance, member: string): string {
  return `sp.${instance.name}.${member}`;
}

/** Makes a namespace with its loopback up. */
export async function addNamespace(instance: Instance, member: string): Promise<void> {
  if (!isNamespaceMount()) {
    mkdirSync(labsFolder, { recursive: true });
    writeFileSync(mountMarker, existsSync(namespaceFolder) ? 'the folder was there' : 'the folder is ours');
  }
  const name = namespaceName(instance, member);
  await must(`make namespace ${name}`, ['ip', 'netns', 'add', name]);
  await must(`start loopback of ${name}`, ['ip', '-n', name, 'link', 'set', 'lo', 'up']);
}

/** Removes a namespace; the links in it go with it once no process lives there. Does nothing if it is absent. */
export async function removeNamespace(instance: Instance, member: string): Promise<void> {
  const name = namespaceName(instance, member);
  if (namespaceNames(instance).includes(name)) await must(`remove namespace ${name}`, ['ip', 'netns', 'delete', name]);
}

/** The names of all namespaces of a lab that exist now. */
export function namespaceNames(instance: Instance): string[] {
  if (!existsSync(namespaceFolder)) return [];
  return readdirSync(namespaceFolder).filter((name) => name.startsWith(`sp.${instance.name}.`));
}

/** The namespaces of a lab (or of one member) in the text form of /proc/PID/ns/net. */
export function namespaceInodes(instance: Instance, member?: string): ReadonlySet<string> {
  const names = namespaceNames(instance).filter((name) => !member || name === namespaceName(instance, member));
  // One that another clean-up has removed in this instant has no processes left to look for.
  const stats = names.map((name) => statSync(join(namespaceFolder, name), { throwIfNoEntry: false }));
  return new Set(stats.flatMap((stat) => (stat === undefined ? [] : [`net:[${stat.ino}]`])));
}

/** The path by which a program can enter the namespace of a member. */
export function namespacePath(instance: Instance, member: string): string {
  return join(namespaceFolder, namespaceName(instance, member));
}

/** Undoes the mount that the first `ip netns add` of the machine made, if it was ours and nobody else uses it. */
export async function releaseNamespaceFolder(): Promise<void> {
  const marker = readMarker();
  if (marker === undefined) return;
  if (isNamespaceMount() && readdirSync(namespaceFolder).length === 0) {
    const undone = await run(['umount', namespaceFolder]);
    if (undone.code === 0 && marker.includes('ours')) removeIfEmpty(namespaceFolder);
  }
  if (!isNamespaceMount()) rmSync(mountMarker, { force: true });
}

function readMarker(): string | undefined {
  try {
    return readFileSync(mountMarker, 'utf8');
  } catch {
    return undefined;
  }
}

function isNamespaceMount(): boolean {
  return readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${namespaceFolder} `);
}
