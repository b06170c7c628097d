/**
 * Readers decides who may read the pages of a process: whoever shows a token that the API server knows, and whom it allows to
 * `get` the path. Answers are remembered for a while, so that scrapes cost the API server next to nothing, and a flood of
 * invented tokens costs it no more than a few questions at once.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { ApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../process/clock.ts';

/** `unknown`: no token, or one that nobody knows. `unavailable`: nobody can say at the moment. */
export type AccessVerdict = 'allowed' | 'forbidden' | 'unknown' | 'unavailable';

/** Judges who asks for a path by the value of the header `authorization`. */
export type MayRead = (authorization: string | undefined, path: string) => Promise<AccessVerdict>;

/** Tokens for this audience are good for these pages and for nothing else, so they may travel without TLS. */
export const readerAudience = 'sallyport';

/** The API server takes the authorization header of a request that it hands on for itself; this one arrives. */
export const tokenHeader = 'x-sallyport-authorization';

export interface ReadersDeps {
  /** Of its own: questions of strangers must not use up the rate limit of the process. */
  readonly client: Pick<KubeClient, 'raw'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

const allowedMs = 60_000;
const refusedMs = 10_000;
/** While the API server is away, who was allowed before stays so. */
const staleMs = 600_000;
const mostRemembered = 1_000;
const mostAtOnce = 4;
const limitMs = 3_000;

const User = z.object({
  username: z.string(),
  uid: z.string().optional(),
  groups: z.array(z.string()).optional(),
  extra: z.record(z.string(), z.array(z.string())).optional(),
});
const TokenReview = z.object({
  status: z
    .object({ authenticated: z.boolean().default(false), user: User.optional() })
    .default({ authenticated: false }),
});
const AccessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

interface Remembered {
  readonly verdict: AccessVerdict;
  readonly atMs: number;
}

export class Readers {
  readonly #deps: ReadersDeps;
  /** hash of token and path -> what was decided, the oldest first */
  readonly #remembered = new Map<string, Remembered>();
  readonly #asking = new Map<string, Promise<AccessVerdict>>();

  constructor(deps: ReadersDeps) {
    this.#deps = deps;
  }

  readonly mayRead: MayRead = async (authorization, path) => {
    const [, token] = /^Bearer +([-\w.~+/=]+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined) return 'unknown';
    const key = hash('sha256', `${token} ${path}`);
    const known = this.#remembered.get(key);
    const ageMs = known === undefined ? 0 : this.#deps.clock.monotonicMs() - known.atMs;
    if (known !== undefined && ageMs < (known.verdict === 'allowed' ? allowedMs : refusedMs)) return known.verdict;
    const verdict = await this.#askOnce(key, token, path);
    return verdict === 'unavailable' && known?.verdict === 'allowed' && ageMs < staleMs ? 'allowed' : verdict;
  };

  #askOnce(key: string, token: string, path: string): Promise<AccessVerdict> {
    const asking = this.#asking.get(key);
    if (asking !== undefined) return asking;
    if (this.#asking.size >= mostAtOnce) return Promise.resolve('unavailable');
    const asked = this.#ask(token, path)
      .then((verdict) => {
        this.#remember(key, verdict);
        return verdict;
      })
      .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asked);
    return asked;
  }

  async #ask(token: string, path: string): Promise<AccessVerdict> {
    try {
      const user = (await this.#userOf(token, [readerAudience])) ?? (await this.#userOf(token, undefined));
      if (user === undefined) return 'unknown';
      const { username, ...rest } = user;
      const answer = await this.#review('authorization.k8s.io', 'SubjectAccessReview', {
        user: username,
        ...rest,
        nonResourceAttributes: { path, verb: 'get' },
      });
      return AccessReview.parse(answer).status.allowed ? 'allowed' : 'forbidden';
    } catch (error) {
      if (error instanceof ApiError || error instanceof z.ZodError) return 'unavailable';
      throw error;
    }
  }

  /** Without audiences the token must be one for the API server itself, as Prometheus has it in its pod. */
  async #userOf(token: string, audiences: readonly string[] | undefined): Promise<z.infer<typeof User> | undefined> {
    const spec = { token, ...(audiences === undefined ? {} : { audiences }) };
    const { status } = TokenReview.parse(await this.#review('authentication.k8s.io', 'TokenReview', spec));
    return status.authenticated ? status.user : undefined;
  }

  #review(group: string, kind: 'TokenReview' | 'SubjectAccessReview', spec: object): Promise<unknown> {
    const body = { apiVersion: `${group}/v1`, kind, spec };
    const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
    return this.#deps.client.raw({ method: 'POST', path, body, timeoutMs: limitMs, retries: 0 });
  }

  #remember(key: string, verdict: AccessVerdict): void {
    if (verdict === 'unavailable') return;
    this.#remembered.delete(key);
    this.#remembered.set(key, { verdict, atMs: this.#deps.clock.monotonicMs() });
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > mostRemembered && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
