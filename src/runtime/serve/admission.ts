/**
 * AdmissionServer answers the API server's webhook calls over HTTPS. A handler is a pure function from request to
 * verdict; all that can go wrong around it is dealt with here. Read `AdmissionHandler` first.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { KeyPair } from '../certs/authority.ts';
import { messageOf } from '../process/bug.ts';
import { type Clock, withLimit } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { type AdmissionRequest, type AdmissionVerdict, parseReview, renderReview } from './admission-review.ts';
import { close, type ListenOptions, listen } from './listen.ts';

/** Decides one request. It reads stores and nothing else: no I/O, no memory of earlier requests. */
export type AdmissionHandler = (request: AdmissionRequest) => AdmissionVerdict | Promise<AdmissionVerdict>;

/** How one call ended, for metrics. `bad` is the caller's fault, `error` ours. */
export type AdmissionOutcome = 'allowed' | 'denied' | 'bad' | 'error';

/** What an admission server tells its metrics. */
export interface AdmissionHooks {
  answered(path: string, outcome: AdmissionOutcome, durationMs: number): void;
}

/** What an admission server needs. Handlers by path, e.g. `/validate/egresspolicies`. */
export interface AdmissionDeps {
  readonly handlers: Readonly<Record<string, AdmissionHandler>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly hooks?: AdmissionHooks;
  readonly limits?: AdmissionLimits;
}

/** Limits of one call. */
export interface AdmissionLimits {
  readonly bodyBytes: number;
  /** From the end of the body to the verdict. */
  readonly handlerMs: number;
  /** From the first byte of the request to the last of its body. */
  readonly receiveMs: number;
}

/** etcd takes objects of 1.5 MB, and an update carries two as JSON. The API server itself waits 10 s by default. */
export const defaultAdmissionLimits: AdmissionLimits = {
  bodyBytes: 8 * 1024 * 1024,
  handlerMs: 5_000,
  receiveMs: 10_000,
};

/**
 * The API server keeps idle connections for 90 s. Ours must live longer, or it would send into a closing one and the user
 * would get a 500. That goes also for connections on which nothing was asked yet: it opens some in advance.
 */
const keepAliveMs = 120_000;

/** An answer that is not a verdict: HTTP status and one sentence. */
class RequestRefusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The server. Give it a certificate, `listen` once, `close` at the end. */
export class AdmissionServer {
  readonly #deps: AdmissionDeps;
  readonly #limits: AdmissionLimits;
  readonly #server: Server;

  constructor(deps: AdmissionDeps, certificate: KeyPair) {
    this.#deps = deps;
    this.#limits = deps.limits ?? defaultAdmissionLimits;
    this.#server = createServer(
      { cert: certificate.certificatePem, key: certificate.keyPem, minVersion: 'TLSv1.2' },
      (request, response) => void this.#serve(request, response),
    );
    this.#server.keepAliveTimeout = keepAliveMs;
    // Both count from the moment of connecting when nothing was asked yet. How long a body may take is up to #body.
    this.#server.requestTimeout = keepAliveMs;
    this.#server.headersTimeout = keepAliveMs;
  }

  /** Resolves with the port; throws PORT_IN_USE. */
  listen(options: ListenOptions): Promise<number> {
    return listen(this.#server, 'the admission server', options);
  }

  /** New connections get this certificate; open ones go on with the one they began with. */
  setCertificate(certificate: KeyPair): void {
    this.#server.setSecureContext({
      cert: certificate.certificatePem,
      key: certificate.keyPem,
      minVersion: 'TLSv1.2',
    });
  }

  /** Waits for running calls, at most as long as one may take. May be called twice. */
  close(): Promise<void> {
    return close(this.#server, this.#deps.clock, this.#limits.handlerMs);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, log, hooks, handlers } = this.#deps;
    const startMs = clock.monotonicMs();
    const path = request.url?.split('?')[0] ?? '';
    // Unknown paths are one label, or a port scanner could fill the metrics with its own words.
    const label = Object.hasOwn(handlers, path) ? path : 'unknown';
    const finish = (status: number, contentType: string, body: string, outcome: AdmissionOutcome): void => {
      response.writeHead(status, { 'content-type': contentType });
      response.end(body);
      hooks?.answered(label, outcome, clock.monotonicMs() - startMs);
    };
    try {
      const { uid, verdict } = await this.#decide(path, request);
      finish(200, 'application/json', renderReview(uid, verdict), verdict.kind === 'deny' ? 'denied' : 'allowed');
    } catch (error) {
      if (error instanceof RequestRefusal) {
        // The rest of a body that was not read must not be taken for the next request.
        response.setHeader('connection', 'close');
        finish(error.status, 'text/plain', `${error.message}\n`, 'bad');
        return;
      }
      log.error({ component: 'admission', path, err: error }, `handler failed: ${messageOf(error)}`);
      finish(500, 'text/plain', 'the handler failed, see the log of the admission server\n', 'error');
    }
  }

  async #decide(
    path: string,
    request: IncomingMessage,
  ): Promise<{ readonly uid: string; readonly verdict: AdmissionVerdict }> {
    const handler = Object.hasOwn(this.#deps.handlers, path) ? this.#deps.handlers[path] : undefined;
    if (handler === undefined) throw new RequestRefusal(404, `there is no admission handler at ${path}`);
    if (request.method !== 'POST') throw new RequestRefusal(405, 'only POST is allowed here');
    if (!/^application\/json\b/.test(request.headers['content-type'] ?? '')) {
      throw new RequestRefusal(415, 'the body must be application/json');
    }
    const { receiveMs } = this.#limits;
    const late = (): Error => new RequestRefusal(408, `the body did not arrive within ${receiveMs} ms`);
    const body = await withLimit(this.#deps.clock, { ms: receiveMs, error: late }, () => this.#body(request));
    const review = parseReview(body);
    if (!review.ok) throw new RequestRefusal(400, review.message);
    const ms = this.#limits.handlerMs;
    const error = (): Error => new Error(`no verdict within ${ms} ms`);
    const verdict = await withLimit(this.#deps.clock, { ms, error }, async () => handler(review.request));
    return { uid: review.request.uid, verdict };
  }

  async #body(request: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    try {
      // Not destroyed on an early end: the refusal has to go out on the same socket.
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        sizeBytes += chunk.length;
        if (sizeBytes > this.#limits.bodyBytes) {
          throw new RequestRefusal(413, `the body is larger than ${this.#limits.bodyBytes} bytes`);
        }
        chunks.push(chunk);
      }
    } catch (error) {
      if (error instanceof RequestRefusal) throw error;
      throw new RequestRefusal(400, `the body did not arrive: ${messageOf(error)}`);
    }
    return Buffer.concat(chunks).toString('utf8');
  }
}
