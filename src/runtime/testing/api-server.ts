/**
 * TestApiServer is an API server in memory, on loopback. It holds state, speaks the protocol as far as our client
 * uses it, and breaks it on request. See README.md for what it does not do.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ServerAccess } from '../kube/access.ts';
import { apiVersionOf, type KubeObject, pathOf, type Resource } from '../kube/resource.ts';
import { type Clock, systemClock } from '../process/clock.ts';
import { type Answer, failure } from './answer.ts';
import { type Fault, FaultPlan, type StreamFault } from './faults.ts';
import { ObjectStore, type StoredObject } from './object-store.ts';
import { Reads } from './reads.ts';
import { type ApiRequest, parseRequest } from './request.ts';
import { filterOf } from './selector.ts';
import { WatchConnection } from './watch-connection.ts';
import { Writes } from './writes.ts';

/** What a test server serves. */
export interface TestApiServerOptions {
  /** Requests for other kinds are answered with 404. */
  readonly resources: readonly Resource[];
  /** Makes timestamps and ends watches; the machine's clock when absent. */
  readonly clock?: Clock;
  /** The real server's minute when absent. */
  readonly bookmarkEveryMs?: number;
  /** False: answer streaming lists with 422, as a server does whose WatchList gate is off. */
  readonly hasStreamingLists?: boolean;
  /** Serve HTTPS with this certificate; with `ca`, client certificates are required and checked. */
  readonly tls?: { readonly key: string; readonly cert: string; readonly ca?: string };
  /** When given, requests without one of these bearer tokens are answered with 401. */
  readonly tokens?: ReadonlySet<string>;
}

/** Starts a server on a free port of loopback. */
export async function startTestApiServer(options: TestApiServerOptions): Promise<TestApiServer> {
  const server = new TestApiServer(options);
  await server.listen();
  return server;
}

export class TestApiServer {
  /** Faults for requests to come. */
  readonly faults = new FaultPlan();
  readonly #options: TestApiServerOptions;
  readonly #clock: Clock;
  readonly #store: ObjectStore;
  readonly #reads: Reads;
  readonly #writes: Writes;
  readonly #server: ReturnType<typeof createServer>;
  /** watch -> path of the collection it follows */
  readonly #watches = new Map<WatchConnection, string>();
  /** verb -> number of requests */
  readonly #requestsByVerb = new Map<string, number>();

  constructor(options: TestApiServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#store = new ObjectStore(() => this.#clock.now());
    this.#reads = new Reads(this.#store);
    this.#writes = new Writes(this.#store);
    const listener: RequestListener = (request, response) => void this.#handle(request, response);
    this.#server =
      options.tls === undefined
        ? createServer(listener)
        : createTlsServer({ ...options.tls, requestCert: options.tls.ca !== undefined }, listener);
    // A real one keeps connections for minutes; Node's five seconds would make whoever reports now and then connect each time.
    this.#server.keepAliveTimeout = 120_000;
    this.#store.subscribe((change) => {
      for (const [watch, collection] of this.#watches) {
        if (collection === change.collection) watch.send(change);
      }
    });
  }

  /** Base URL, once it listens. */
  get url(): string {
    // Only a pipe has a string here, and only a server that does not listen has null.
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  }

  /** Access for a client without credentials. */
  get access(): ServerAccess {
    const credentials = { tls: { isInsecure: false } };
    return { server: this.url, namespace: 'default', credentials: async () => credentials, forget: () => {} };
  }

  /** Number of watches that are open now. */
  get openWatches(): number {
    return this.#watches.size;
  }

  /** Returns how many requests came, of one verb or of all. */
  requests(verb?: string): number {
    if (verb !== undefined) return this.#requestsByVerb.get(verb) ?? 0;
    return [...this.#requestsByVerb.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Starts to listen, on a free port unless one is given. */
  async listen(port = 0): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Breaks all connections and stops to listen; the state stays. May be called twice. */
  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Creates or replaces an object from the test's side, status included. */
  put(resource: Resource, object: KubeObject): StoredObject {
    return this.#store.write(resource, object);
  }

  /** Deletes from the test's side; finalizers are obeyed. */
  delete(resource: Resource, key: string): void {
    this.#store.delete(resource, key);
  }

  /** Returns one object as it is now. */
  read(resource: Resource, key: string): StoredObject | undefined {
    return this.#store.read(resource, key);
  }

  /** Returns all objects of a kind as they are now, sorted by key. */
  list(resource: Resource): readonly StoredObject[] {
    return this.#store.list(resource);
  }

  /** Forgets history: older versions and unfinished lists are answered with 410. */
  compact(): void {
    this.#store.compact();
    this.#reads.forgetPages();
  }

  /** Sends a bookmark on every open watch now. */
  sendBookmarks(): void {
    for (const watch of this.#watches.keys()) watch.bookmark();
  }

  /** Breaks every open watch in the given way. */
  breakWatches(how: StreamFault): void {
    for (const watch of [...this.#watches.keys()]) watch.break(how);
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = incoming;
    const { accept = '', 'content-type': contentType = '', authorization = '' } = incoming.headers;
    const request = parseRequest({ method, url, accept, contentType }, this.#options.resources);
    const verb = request?.verb ?? 'raw';
    this.#requestsByVerb.set(verb, (this.#requestsByVerb.get(verb) ?? 0) + 1);
    const body = await readBody(incoming);
    if (this.#options.tokens?.has(authorization.replace(/^Bearer /, '')) === false) {
      return send(response, failure(401, 'Unauthorized', 'Unauthorized'));
    }
    const isContinued = request?.query.has('continue') ?? false;
    const fault = this.faults.take({ verb, plural: request?.resource.plural ?? '', isContinued });
    switch (fault?.kind) {
      case 'drop':
        response.socket?.resetAndDestroy();
        return;
      case 'hang':
        return;
      case 'garbage':
        response.end('<html>not JSON</html>');
        return;
      case 'answer':
        return send(
          response,
          failure(fault.status, fault.reason ?? '', 'planned by the test', fault.retryAfterSeconds),
        );
    }
    if (request === undefined) return send(response, this.#raw(method, url));
    if (this.#options.hasStreamingLists === false && request.query.has('sendInitialEvents')) {
      return send(response, failure(422, 'Invalid', 'sendInitialEvents is forbidden'));
    }
    if (verb === 'watch') return this.#watch(request, response, fault);
    const answer = this.#answer(request, body, fault);
    if (fault?.kind === 'lose-answer') response.socket?.resetAndDestroy();
    else send(response, answer);
  }

  #raw(method: string, url: string): Answer {
    if (method === 'GET' && url === '/version') {
      return { status: 200, body: { major: '1', minor: '36', gitVersion: 'v1.36.0-test' } };
    }
    return failure(404, 'NotFound', 'the server could not find the requested resource');
  }

  #answer(request: ApiRequest, body: string, fault: Fault | undefined): Answer {
    if (request.verb === 'get') return this.#reads.get(request);
    if (request.verb === 'list') return this.#reads.list(request, fault?.kind === 'reorder');
    try {
      return this.#writes.answer(request, body === '' ? undefined : JSON.parse(body));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return failure(400, 'BadRequest', 'the body is not JSON');
    }
  }

  #watch(request: ApiRequest, response: ServerResponse, fault: Fault | undefined): void {
    const { query, resource } = request;
    const filter = filterOf(request.namespace, query);
    const watch = new WatchConnection({
      response,
      filter,
      textOf: (object) => this.#reads.textOf(request, object),
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      fault,
      clock: this.#clock,
      timeoutMs: Number(query.get('timeoutSeconds') ?? 1_800) * 1_000,
      bookmarkEveryMs: this.#options.bookmarkEveryMs ?? 60_000,
      store: this.#store,
    });
    this.#watches.set(watch, pathOf(resource));
    response.on('close', () => this.#watches.delete(watch));
    if (query.get('sendInitialEvents') === 'true') {
      watch.sendInitial(this.#store.list(resource).filter(filter));
      return;
    }
    const missed = this.#store.changesAfter(resource, Number(query.get('resourceVersion') ?? 0));
    if (missed === undefined) watch.break('gone');
    for (const change of missed ?? []) watch.send(change);
  }
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, { 'content-type': 'application/json' });
  response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
}
