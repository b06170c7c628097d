/**
 * kubeconfigAccess turns one chosen context into a ServerAccess: embedded data, files that are followed, or a
 * plugin. What the files hold is decided here once; what they contain is read before every call.
 */
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type AccessDeps, type Credentials, keepIfSame, type ServerAccess, type TlsMaterial } from './access.ts';
import { CredentialFile } from './credential-file.ts';
import { ExecCredential } from './exec-credential.ts';
import {
  chooseContext,
  type KubeconfigChoice,
  type KubeconfigFile,
  kubeconfigError,
  mergeKubeconfigs,
} from './kubeconfig.ts';

/** Which files and which context; an explicit path wins over KUBECONFIG, which wins over the home folder. */
export interface KubeconfigSelection {
  readonly path?: string | undefined;
  readonly context?: string | undefined;
}

/** Loads the kubeconfig and returns access by its chosen context. Rejects with KUBECONFIG_INVALID. */
export async function kubeconfigAccess(selection: KubeconfigSelection, deps: AccessDeps): Promise<ServerAccess> {
  const config = mergeKubeconfigs(await readFiles(selection.path, deps));
  return accessOf(chooseContext(config, selection.context), deps);
}

/** A list in KUBECONFIG may name files that do not exist; a path given by hand may not. */
async function readFiles(path: string | undefined, deps: AccessDeps): Promise<KubeconfigFile[]> {
  if (path !== undefined) {
    try {
      return [{ path, text: await deps.readFile(path) }];
    } catch (cause) {
      throw kubeconfigError(path, 'cannot be read; check the path and its permissions.', cause);
    }
  }
  const paths = (deps.env.KUBECONFIG ?? '').split(delimiter).filter((entry) => entry !== '');
  if (paths.length === 0) paths.push(join(deps.env.HOME ?? homedir(), '.kube', 'config'));
  const files: KubeconfigFile[] = [];
  for (const candidate of paths) {
    try {
      files.push({ path: candidate, text: await deps.readFile(candidate) });
    } catch (cause) {
      if (!isAbsent(cause)) throw kubeconfigError(candidate, 'cannot be read; check its permissions.', cause);
    }
  }
  if (files.length > 0) return files;
  throw kubeconfigError(paths.join(delimiter), 'no kubeconfig found; set KUBECONFIG or name a file with --kubeconfig.');
}

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR');
}

/** Text that is either written in the kubeconfig, or followed in a file, or absent. */
interface TextSource {
  text(): Promise<string | undefined>;
  forget(): void;
}

function sourceOf(data: string | undefined, path: string | undefined, what: string, deps: AccessDeps): TextSource {
  // Embedded data wins over a file, as in kubectl.
  if (data === undefined && path !== undefined) return new CredentialFile(path, what, deps);
  return { text: async () => data, forget: () => {} };
}

function accessOf(choice: KubeconfigChoice, deps: AccessDeps): ServerAccess {
  const { cluster, user, source } = choice;
  const decode = (field: string, data: string | undefined) => decodePem(source, field, data);
  const ca = sourceOf(
    decode('certificate-authority-data', cluster['certificate-authority-data']),
    cluster['certificate-authority'],
    'the certificate authority',
    deps,
  );
  const certificate = sourceOf(
    decode('client-certificate-data', user['client-certificate-data']),
    user['client-certificate'],
    'the client certificate',
    deps,
  );
  const key = sourceOf(decode('client-key-data', user['client-key-data']), user['client-key'], 'the client key', deps);
  // For tokens a file wins over embedded data: the file is the one that is renewed.
  const token = user.tokenFile
    ? sourceOf(undefined, user.tokenFile, 'the token', deps)
    : sourceOf(user.token, undefined, 'the token', deps);
  const plugin = user.exec == null ? undefined : new ExecCredential(user.exec, cluster, source, deps);
  let tls: TlsMaterial | undefined;

  return {
    server: cluster.server.replace(/\/+$/, ''),
    namespace: choice.namespace,
    async credentials(): Promise<Credentials> {
      const fromPlugin = await plugin?.current();
      tls = keepIfSame(tls, {
        ca: await ca.text(),
        certificate: fromPlugin?.certificate ?? (await certificate.text()),
        key: fromPlugin?.key ?? (await key.text()),
        serverName: cluster['tls-server-name'],
        isInsecure: cluster['insecure-skip-tls-verify'],
      });
      return { token: fromPlugin?.token ?? (await token.text()), tls };
    },
    forget() {
      for (const part of [ca, certificate, key, token, plugin]) part?.forget();
    },
  };
}

function decodePem(source: string, field: string, data: string | undefined): string | undefined {
  if (data === undefined || data === '') return undefined;
  const text = Buffer.from(data, 'base64').toString('utf8');
  if (text.includes('-----BEGIN ')) return text;
  throw kubeconfigError(source, `${field} is not base64 of PEM text; embed the file again or name it by path.`);
}
