/**
 * ExecCredential runs the credential plugin of a kubeconfig (client.authentication.k8s.io/v1) and keeps what it
 * printed until it expires or the server refuses it. Cloud clusters hand out their tokens this way.
 */
import { z } from 'zod';
import type { AccessDeps } from './access.ts';
import { type ExecPlugin, type KubeconfigCluster, kubeconfigError } from './kubeconfig.ts';

const apiVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const timeoutMs = 60_000;
/** A credential this close to its end is renewed, so that it does not expire on the way to the server. */
const marginMs = 10_000;

const answerSchema = z.object({
  apiVersion: z.string(),
  kind: z.literal('ExecCredential'),
  status: z.object({
    expirationTimestamp: z.iso.datetime({ offset: true }).optional(),
    token: z.string().min(1).optional(),
    clientCertificateData: z.string().min(1).optional(),
    clientKeyData: z.string().min(1).optional(),
  }),
});

/** What the plugin printed: a token, a certificate with key, or both. */
export interface PluginCredential {
  readonly token: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

export class ExecCredential {
  readonly #plugin: ExecPlugin;
  readonly #cluster: KubeconfigCluster;
  readonly #source: string;
  readonly #deps: AccessDeps;
  #cached: { readonly credential: PluginCredential; readonly endsAtMs: number } | undefined;
  #running: Promise<PluginCredential> | undefined;

  /** Throws KUBECONFIG_INVALID when the plugin speaks a version we do not. */
  constructor(plugin: ExecPlugin, cluster: KubeconfigCluster, source: string, deps: AccessDeps) {
    if (!apiVersions.includes(plugin.apiVersion)) {
      throw kubeconfigError(
        source,
        `exec plugin "${plugin.command}" speaks ${plugin.apiVersion}; use ${apiVersions[0]}.`,
      );
    }
    this.#plugin = plugin;
    this.#cluster = cluster;
    this.#source = source;
    this.#deps = deps;
  }

  /** Returns a credential that is valid now. Calls at the same time share one run of the plugin. */
  async current(): Promise<PluginCredential> {
    if (this.#cached !== undefined && this.#deps.clock.now().getTime() < this.#cached.endsAtMs - marginMs) {
      return this.#cached.credential;
    }
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** The next call of current() runs the plugin. */
  forget(): void {
    this.#cached = undefined;
  }

  async #run(): Promise<PluginCredential> {
    const stdout = await this.#execute();
    const answer = this.#parse(stdout);
    const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp } = answer.status;
    if (token === undefined && (certificate === undefined || key === undefined)) {
      throw this.#problem('printed neither a token nor a certificate with its key');
    }
    const credential = { token, certificate, key };
    const endsAtMs = expirationTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(expirationTimestamp);
    this.#cached = { credential, endsAtMs };
    return credential;
  }

  async #execute(): Promise<string> {
    const { command, args, env } = this.#plugin;
    const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const info = JSON.stringify({
      apiVersion: this.#plugin.apiVersion,
      kind: 'ExecCredential',
      spec: { interactive: false, ...(this.#plugin.provideClusterInfo ? { cluster: this.#clusterInfo() } : {}) },
    });
    let result: Awaited<ReturnType<AccessDeps['exec']>>;
    try {
      const environment = { ...this.#deps.env, ...own, KUBERNETES_EXEC_INFO: info };
      result = await this.#deps.exec(command, args ?? [], { env: environment, timeoutMs });
    } catch (cause) {
      throw this.#problem(`did not run (${cause instanceof Error ? cause.message : String(cause)})`, cause);
    }
    if (result.exitCode === 0) return result.stdout;
    const said = result.stderr.trim().split('\n').at(-1) ?? '';
    throw this.#problem(`ended with code ${result.exitCode}${said === '' ? '' : ` (${said})`}`);
  }

  #clusterInfo(): object {
    return {
      server: this.#cluster.server,
      'tls-server-name': this.#cluster['tls-server-name'],
      'insecure-skip-tls-verify': this.#cluster['insecure-skip-tls-verify'],
      'certificate-authority-data': this.#cluster['certificate-authority-data'],
    };
  }

  #parse(stdout: string): z.infer<typeof answerSchema> {
    try {
      const answer = answerSchema.parse(JSON.parse(stdout));
      if (answer.apiVersion === this.#plugin.apiVersion) return answer;
    } catch (cause) {
      throw this.#problem('printed something that is not an ExecCredential', cause);
    }
    throw this.#problem(`did not answer in the version it was asked for (${this.#plugin.apiVersion})`);
  }

  #problem(what: string, cause?: unknown): Error {
    const hint = this.#plugin.installHint === undefined ? '' : ` ${this.#plugin.installHint.trim()}`;
    return kubeconfigError(
      this.#source,
      `exec plugin "${this.#plugin.command}" ${what}; run it by hand to see why.${hint}`,
      cause,
    );
  }
}
