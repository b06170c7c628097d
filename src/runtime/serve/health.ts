/**
 * HealthServer answers the kubelet and Prometheus: /livez, /readyz and /metrics over plain HTTP. Health is for everybody, the
 * rest for whom `mayRead` lets.
 * Ready means: the caches are synced and the work found at the start was done once. Read `HealthCheck` first.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { messageOf } from '../process/bug.ts';
import type { Clock } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { close, type ListenOptions, listen } from './listen.ts';
import { type AccessVerdict, type MayRead, tokenHeader } from './readers.ts';

/** One named condition. `missing` returns what is not there yet in a few words, or undefined when all is well. */
export interface HealthCheck {
  readonly name: string;
  readonly missing: () => string | undefined;
}

/** The text of /metrics. A prom-client registry fits. */
export interface MetricsText {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** What a health server needs. No liveness checks means: alive as long as the event loop answers. */
export interface HealthDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MetricsText;
  readonly readiness: readonly HealthCheck[];
  readonly liveness?: readonly HealthCheck[];
  /** Aborted when the process stops: from then on it is not ready. */
  readonly stopping?: AbortSignal;
  /** Who may read metrics and pages; absent: everybody who reaches the port. */
  readonly mayRead?: MayRead | undefined;
  /** More pages to read, by path. */
  readonly pages?: Readonly<Record<string, Page>>;
}

/** A page of a process; gets what follows the question mark. */
export type Page = (query: URLSearchParams) => Promise<PageAnswer>;

/** What a page answers. */
export interface PageAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** The server. `listen` once, `close` at the end. */
export class HealthServer {
  readonly #deps: HealthDeps;
  readonly #server: Server;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.requestTimeout = 5_000;
    this.#server.headersTimeout = 5_000;
  }

  /** Resolves with the port; throws PORT_IN_USE. */
  listen(options: ListenOptions): Promise<number> {
    return listen(this.#server, 'the health server', options);
  }

  /** Ends within two seconds. May be called twice. */
  close(): Promise<void> {
    return close(this.#server, this.#deps.clock, 2_000);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answer(request).catch((error: unknown) => {
      this.#deps.log.error({ component: 'health', err: error }, `cannot answer ${request.url}: ${messageOf(error)}`);
      return text(500, 'internal error\n');
    });
    response.writeHead(answer.status, { 'content-type': answer.contentType, 'cache-control': 'no-store' });
    response.end(request.method === 'HEAD' ? undefined : answer.body);
  }

  async #refusal({ headers }: IncomingMessage, path: string): Promise<PageAnswer | undefined> {
    const { mayRead } = this.#deps;
    if (mayRead === undefined) return undefined;
    const handedOn = headers[tokenHeader];
    const shown = headers.authorization ?? (Array.isArray(handedOn) ? undefined : handedOn);
    const verdict = await mayRead(shown, path);
    return verdict === 'allowed' ? undefined : refusals[verdict];
  }

  async #answer(request: IncomingMessage): Promise<PageAnswer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'only GET is allowed here\n');
    const { metrics, readiness, liveness = [], stopping, pages = {} } = this.#deps;
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const isGuarded = path === '/metrics' || Object.hasOwn(pages, path);
    const refusal = isGuarded ? await this.#refusal(request, path) : undefined;
    if (refusal !== undefined) return refusal;
    switch (path) {
      case '/livez':
        return report(liveness);
      case '/readyz':
        return report([
          ...readiness,
          { name: 'process', missing: () => (stopping?.aborted ? 'is stopping' : undefined) },
        ]);
      case '/metrics':
        return { status: 200, contentType: metrics.contentType, body: await metrics.metrics() };
      default: {
        const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
        if (page !== undefined) return await page(new URLSearchParams(query));
        return text(404, `there is ${['/livez', '/readyz', ...Object.keys(pages)].join(', ')} and /metrics\n`);
      }
    }
  }
}

const refusals: Readonly<Record<Exclude<AccessVerdict, 'allowed'>, PageAnswer>> = {
  unknown: text(401, 'show a token that the API server knows: Authorization: Bearer ...\n'),
  forbidden: text(
    403,
    'whoever the token belongs to may not get this path; the ClusterRole sallyport-reader allows it\n',
  ),
  unavailable: text(503, 'the API server cannot be asked about the token now\n'),
};

/** One line per check in the manner of the API server's own endpoints, and a last line with the verdict. */
function report(checks: readonly HealthCheck[]): PageAnswer {
  const results = checks.map(({ name, missing }) => ({ name, lack: missing() }));
  const lines = results.map(({ name, lack }) => (lack === undefined ? `[+] ${name}` : `[-] ${name}: ${lack}`));
  const failed = results.filter(({ lack }) => lack !== undefined).map(({ name }) => name);
  const verdict = failed.length === 0 ? 'ok' : `not ok: ${failed.join(', ')}`;
  return text(failed.length === 0 ? 200 : 503, `${[...lines, verdict].join('\n')}\n`);
}

function text(status: number, body: string): PageAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}
