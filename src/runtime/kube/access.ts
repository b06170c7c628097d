/**
 * ServerAccess is how to reach one API server and as whom. It comes from the pod's service account
 * (in-cluster.ts) or from a kubeconfig (kubeconfig-access.ts). Credentials change during a process's life
 * (tokens and certificates rotate), so they are asked for before every call.
 */
import type { Clock } from '../process/clock.ts';

/** What TLS needs, as PEM text. Without `ca` the trust store of the machine decides. */
export interface TlsMaterial {
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** The name to verify the server's certificate against, if it is not the host of the URL. */
  readonly serverName?: string | undefined;
  /** The server's certificate is not verified. Only a kubeconfig can ask for it. */
  readonly isInsecure: boolean;
}

/** Who we are right now. `tls` is the same object as last time as long as its content is the same. */
export interface Credentials {
  readonly token?: string | undefined;
  readonly tls: TlsMaterial;
}

export interface ServerAccess {
  /** Base URL, without a slash at the end. */
  readonly server: string;
  /** The namespace the credentials were made for; `default` when nothing says otherwise. */
  readonly namespace: string;
  /** Returns what to use for the next call. Rejects with EgressError KUBECONFIG_INVALID. */
  credentials(): Promise<Credentials>;
  /** Forgets what is cached, after the server refused it (401). */
  forget(): void;
}

/** What a finished program said. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The parts of the world that loading credentials touches. */
export interface AccessDeps {
  readonly clock: Clock;
  /** Reads a text file; rejects when it cannot. */
  readonly readFile: (path: string) => Promise<string>;
  /** Runs a program with exactly this environment and no input; rejects when it cannot be started or takes too long. */
  readonly exec: (
    command: string,
    args: readonly string[],
    options: { readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number },
  ) => Promise<ExecResult>;
  readonly env: NodeJS.ProcessEnv;
}

/** Returns `previous` when both hold the same material, so that connections are kept. */
export function keepIfSame(previous: TlsMaterial | undefined, next: TlsMaterial): TlsMaterial {
  if (previous === undefined) return next;
  const isSame =
    previous.ca === next.ca &&
    previous.certificate === next.certificate &&
    previous.key === next.key &&
    previous.serverName === next.serverName &&
    previous.isInsecure === next.isInsecure;
  return isSame ? previous : next;
}
