/**
 * CredentialFile follows a small file that is replaced now and then: a service account token (the kubelet renews
 * it after 80 % of its life), a client certificate, a CA bundle. It is read again when the last read is older
 * than five seconds. A file that vanishes during a swap keeps its last content.
 */
import { EgressError } from '../../api/error.ts';
import type { AccessDeps } from './access.ts';

const freshMs = 5_000;

export class CredentialFile {
  readonly #path: string;
  readonly #what: string;
  readonly #deps: AccessDeps;
  #text: string | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  /** `what` names the file in errors: "the service account token". */
  constructor(path: string, what: string, deps: AccessDeps) {
    this.#path = path;
    this.#what = what;
    this.#deps = deps;
  }

  /** Returns the trimmed content; rejects with KUBECONFIG_INVALID if it was never readable. */
  async text(): Promise<string> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#text !== undefined && nowMs - this.#readAtMs < freshMs) return this.#text;
    try {
      const text = (await this.#deps.readFile(this.#path)).trim();
      if (text === '') throw new Error('the file is empty');
      this.#text = text;
    } catch (cause) {
      if (this.#text === undefined) throw unreadable(this.#what, this.#path, cause);
    }
    this.#readAtMs = nowMs;
    return this.#text;
  }

  /** The next call of text() reads the file. */
  forget(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }
}

function unreadable(what: string, path: string, cause: unknown): EgressError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EgressError(
    'KUBECONFIG_INVALID',
    `Cannot read ${what} from ${path} (${why}); check the path and its permissions.`,
    {
      data: { path },
      cause,
    },
  );
}
