/**
 * Kubeconfig is the merged content of the files that KUBECONFIG names, with every path made absolute.
 * Pure: texts in, one value out. Merging follows kubectl: the first file that defines a name wins, and so does
 * the first current-context. Read `Kubeconfig` first.
 */
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { EgressError } from '../../api/error.ts';

const clusterSchema = z.object({
  server: z.string().min(1),
  'certificate-authority': z.string().optional(),
  'certificate-authority-data': z.string().optional(),
  'insecure-skip-tls-verify': z.boolean().default(false),
  'tls-server-name': z.string().optional(),
  'proxy-url': z.string().optional(),
});

const execSchema = z.object({
  apiVersion: z.string(),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  installHint: z.string().optional(),
  provideClusterInfo: z.boolean().default(false),
});

const userSchema = z.object({
  'client-certificate': z.string().optional(),
  'client-certificate-data': z.string().optional(),
  'client-key': z.string().optional(),
  'client-key-data': z.string().optional(),
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  exec: execSchema.nullish(),
  as: z.string().optional(),
  username: z.string().optional(),
  'auth-provider': z.object({ name: z.string() }).nullish(),
});

const contextSchema = z.object({
  cluster: z.string().min(1),
  user: z.string().default(''),
  namespace: z.string().optional(),
});

/** Keys we do not know are left alone: kubeconfigs carry extensions of other programs. */
const fileSchema = z.object({
  'current-context': z.string().nullish(),
  clusters: z.array(z.object({ name: z.string(), cluster: clusterSchema })).nullish(),
  users: z.array(z.object({ name: z.string(), user: userSchema.nullish() })).nullish(),
  contexts: z.array(z.object({ name: z.string(), context: contextSchema })).nullish(),
});

/** How to reach a cluster, as the file says it. */
export type KubeconfigCluster = z.infer<typeof clusterSchema>;
/** How to prove who we are, as the file says it. */
export type KubeconfigUser = z.infer<typeof userSchema>;
/** A program that prints credentials. */
export type ExecPlugin = z.infer<typeof execSchema>;

/** The text of one file and where it stood. */
export interface KubeconfigFile {
  readonly path: string;
  readonly text: string;
}

/** The merged files. Paths inside are absolute. */
export interface Kubeconfig {
  readonly currentContext: string | undefined;
  readonly clusterByName: ReadonlyMap<string, KubeconfigCluster>;
  readonly userByName: ReadonlyMap<string, KubeconfigUser>;
  readonly contextByName: ReadonlyMap<string, z.infer<typeof contextSchema>>;
  /** Names of the files, for error messages. */
  readonly source: string;
}

/** One context with its cluster and user looked up. */
export interface KubeconfigChoice {
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
  readonly namespace: string;
  readonly source: string;
}

/** Makes the error for a kubeconfig that cannot be used. */
export function kubeconfigError(source: string, problem: string, cause?: unknown): EgressError {
  return new EgressError('KUBECONFIG_INVALID', `${source}: ${problem}`, { data: { file: source }, cause });
}

/** Parses and merges; the first definition of a name wins. Throws KUBECONFIG_INVALID naming the file. */
export function mergeKubeconfigs(files: readonly KubeconfigFile[]): Kubeconfig {
  const parsed = files.map((file) => ({ path: file.path, content: parseFile(file) }));
  const clusterByName = new Map<string, KubeconfigCluster>();
  const userByName = new Map<string, KubeconfigUser>();
  const contextByName = new Map<string, z.infer<typeof contextSchema>>();
  for (const { path, content } of parsed) {
    for (const { name, cluster } of content.clusters ?? []) {
      if (!clusterByName.has(name)) clusterByName.set(name, absoluteCluster(cluster, path));
    }
    for (const { name, user } of content.users ?? []) {
      if (!userByName.has(name)) userByName.set(name, absoluteUser(user ?? {}, path));
    }
    for (const { name, context } of content.contexts ?? []) {
      if (!contextByName.has(name)) contextByName.set(name, context);
    }
  }
  return {
    currentContext: parsed.map(({ content }) => content['current-context']).find((name) => !!name) ?? undefined,
    clusterByName,
    userByName,
    contextByName,
    source: files.map((file) => file.path).join(':'),
  };
}

/** Looks a context up, the current one when no name is given. Throws KUBECONFIG_INVALID saying what is missing. */
export function chooseContext(config: Kubeconfig, wanted?: string): KubeconfigChoice {
  const name = wanted ?? config.currentContext;
  const known = [...config.contextByName.keys()].sort().join(', ') || 'none';
  if (name === undefined) {
    throw kubeconfigError(config.source, `no current-context is set; choose one of: ${known}.`);
  }
  const context = config.contextByName.get(name);
  if (context === undefined) {
    throw kubeconfigError(config.source, `there is no context "${name}"; choose one of: ${known}.`);
  }
  const cluster = config.clusterByName.get(context.cluster);
  if (cluster === undefined) {
    throw kubeconfigError(config.source, `context "${name}" names cluster "${context.cluster}", which is not defined.`);
  }
  const user = context.user === '' ? {} : config.userByName.get(context.user);
  if (user === undefined) {
    throw kubeconfigError(config.source, `context "${name}" names user "${context.user}", which is not defined.`);
  }
  refuseUnsupported(config.source, context.cluster, cluster, context.user, user);
  return { context: name, cluster, user, namespace: context.namespace ?? 'default', source: config.source };
}

/** Settings that would change where we connect or as whom are refused: ignoring them would be a silent wrong. */
function refuseUnsupported(
  source: string,
  clusterName: string,
  cluster: KubeconfigCluster,
  userName: string,
  user: KubeconfigUser,
): void {
  const refuse = (problem: string) => {
    throw kubeconfigError(source, problem);
  };
  if (!/^https?:\/\/[^/]/.test(cluster.server)) {
    refuse(`cluster "${clusterName}" has server "${cluster.server}"; it must be an http:// or https:// URL.`);
  }
  if (cluster['proxy-url'] !== undefined) {
    refuse(`cluster "${clusterName}" sets proxy-url, which is not supported; use a tunnel and set server to its end.`);
  }
  if (user['auth-provider'] != null) {
    refuse(
      `user "${userName}" uses auth-provider "${user['auth-provider'].name}", which Kubernetes has removed; use exec.`,
    );
  }
  if (user.username !== undefined) {
    refuse(`user "${userName}" uses a password, which Kubernetes has removed; use a token or a client certificate.`);
  }
  if (user.as !== undefined) {
    refuse(`user "${userName}" asks for impersonation (as), which is not supported; use credentials of that user.`);
  }
}

function parseFile(file: KubeconfigFile): z.infer<typeof fileSchema> {
  let value: unknown;
  try {
    value = parse(file.text);
  } catch (cause) {
    const [firstLine] = cause instanceof Error ? cause.message.split('\n') : ['not YAML'];
    throw kubeconfigError(file.path, `is not valid YAML: ${firstLine}; correct the file.`, cause);
  }
  // An empty file is an empty configuration for kubectl too.
  const result = fileSchema.safeParse(value ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the file' : issue.path.join('.');
  throw kubeconfigError(
    file.path,
    `${where}: ${issue?.message ?? 'is not a kubeconfig'}; correct the file.`,
    result.error,
  );
}

function absoluteCluster(cluster: KubeconfigCluster, file: string): KubeconfigCluster {
  return { ...cluster, ...absolute(cluster, ['certificate-authority'], file) };
}

function absoluteUser(user: KubeconfigUser, file: string): KubeconfigUser {
  const paths = absolute(user, ['client-certificate', 'client-key', 'tokenFile'], file);
  // A command with a slash is a path relative to the file; a bare word is looked up in PATH.
  const exec = user.exec?.command.includes('/')
    ? { ...user.exec, command: resolve(dirname(file), user.exec.command) }
    : user.exec;
  return { ...user, ...paths, ...(exec == null ? {} : { exec }) };
}

function absolute<T, K extends keyof T & string>(
  value: T,
  fields: readonly K[],
  file: string,
): Partial<Record<K, string>> {
  const paths: Partial<Record<K, string>> = {};
  for (const field of fields) {
    const path = value[field];
    if (typeof path === 'string' && path !== '') paths[field] = resolve(dirname(file), path);
  }
  return paths;
}
