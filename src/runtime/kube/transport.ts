/**
 * Transport sends single HTTP requests to one API server: connections, TLS, credentials, and the translation of
 * every failure below HTTP into an ApiError. It knows nothing of objects, retries or limits: see http-client.ts.
 */
import { type Dispatcher, Pool } from 'undici';
import { messageOf } from '../process/bug.ts';
import type { Credentials, ServerAccess, TlsMaterial } from './access.ts';
import { ApiError, type TransportReason } from './api-error.ts';

/** One request. `what` is how errors name it. */
export interface HttpRequest {
  readonly what: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with query, below the server's base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
}

/** An answer whose body is still on the wire. Read it with text() or chunks(), once. */
export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  text(): Promise<string>;
  chunks(): AsyncIterable<Buffer>;
}

/**
 * Failures of the connection attempt: the server has not seen the request. Codes that an established connection
 * can fail with too (ETIMEDOUT, EHOSTUNREACH) are left out: then nobody knows what the server has seen.
 */
const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

export class Transport {
  readonly #access: ServerAccess;
  readonly #userAgent: string;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #retired = new Set<Pool>();
  #pool: { readonly pool: Pool; readonly tls: TlsMaterial } | undefined;
  #isClosed = false;

  constructor(access: ServerAccess, userAgent: string) {
    const url = new URL(access.server);
    this.#access = access;
    this.#userAgent = userAgent;
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/$/, '');
  }

  /** Sends and resolves with the answer's head, whatever its status. Rejects with ApiError or the signal's reason. */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { token, tls } = await this.#credentials(request.what);
    request.signal.throwIfAborted();
    try {
      const response = await this.#poolFor(tls).request({
        method: request.method,
        path: this.#prefix + request.path,
        headers: {
          'user-agent': this.#userAgent,
          ...request.headers,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: request.body ?? null,
        signal: request.signal,
      });
      return answerOf(response, request);
    } catch (error) {
      throw translated(error, request);
    }
  }

  /** Later requests use new connections; running ones are not touched. For when pooled connections may be dead. */
  reconnect(): void {
    if (this.#pool === undefined) return;
    const { pool } = this.#pool;
    this.#pool = undefined;
    this.#retired.add(pool);
    pool.close(() => this.#retired.delete(pool));
  }

  /** Breaks running requests and closes every connection. May be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const pools = [...this.#retired, ...(this.#pool === undefined ? [] : [this.#pool.pool])];
    this.#pool = undefined;
    this.#retired.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  async #credentials(what: string): Promise<Credentials> {
    try {
      return await this.#access.credentials();
    } catch (error) {
      throw ApiError.transport('NoCredentials', `${what}: ${messageOf(error)}`, error);
    }
  }

  #poolFor(tls: TlsMaterial): Pool {
    if (this.#isClosed) throw ApiError.transport('Unreachable', 'the Kubernetes client is closed');
    if (this.#pool?.tls !== tls) {
      this.reconnect();
      this.#pool = { pool: makePool(this.#origin, tls), tls };
    }
    return this.#pool.pool;
  }
}

function makePool(origin: string, tls: TlsMaterial): Pool {
  return new Pool(origin, {
    // Limits are set per call by http-client.ts; a watch may be silent for longer than any of undici's.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    // Over HTTP/2 a request whose body is not sent when it is aborted makes Node write empty frames for ever, in one
    // uninterrupted loop that eats all memory (Node 26.10, undici 8.12, seen 15 Nov 2026): a lease that could not be renewed in
    // time was enough. undici speaks HTTP/2 unless it is told not to.
    allowH2: false,
    connect: {
      timeout: 5_000,
      // libuv probes once per second, ten times: a peer that vanished is noticed 25 s after its last byte.
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      rejectUnauthorized: !tls.isInsecure,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls.certificate === undefined ? {} : { cert: tls.certificate }),
      ...(tls.key === undefined ? {} : { key: tls.key }),
      ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    },
  });
}

function answerOf(response: Dispatcher.ResponseData, request: HttpRequest): HttpAnswer {
  const retryAfter = response.headers['retry-after'];
  return {
    status: response.statusCode,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    async text() {
      try {
        return await response.body.text();
      } catch (error) {
        throw translated(error, request);
      }
    },
    async *chunks() {
      try {
        for await (const chunk of response.body) yield chunk;
      } catch (error) {
        throw translated(error, request);
      }
    },
  };
}

/** An aborted request fails with the reason of its signal, which may be an ApiError of ours (a limit). */
function translated(error: unknown, request: HttpRequest): unknown {
  if (error instanceof ApiError) return error;
  if (request.signal.aborted) return request.signal.reason;
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const reason: TransportReason = neverSent.has(code) || isTlsRefusal(code) ? 'Unreachable' : 'Disconnected';
  return ApiError.transport(reason, `${request.what}: ${messageOf(error) || code}`, error);
}

/** Codes of OpenSSL's certificate checks and of Node's host name check. */
function isTlsRefusal(code: string): boolean {
  return code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_') || /CERT|SIGNATURE|ISSUER/.test(code);
}
