/**
 * What a client of a proxy does, byte by byte: nothing here corrects or completes what a test sends. Every wait has a
 * limit, and an answer that does not come is an error that says what was waited for.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Where the proxy under test is, as clients see it. */
export const proxyAddress = '10.244.0.10';
const LIMIT_MS = 10_000;

const sourceOf = (from: string | undefined): { readonly localAddress?: string } =>
  from === undefined ? {} : { localAddress: from };

/** An open connection to a TCP rule. */
export interface Conversation extends Disposable {
  /** The line with which the server greeted: its address. */
  readonly server: string;
  /** Sends a text and resolves when it came back. */
  echo(text: string): Promise<void>;
  /** Whether the other side has ended it. */
  readonly isBroken: boolean;
  /** Resolves when the other side ends it. */
  readonly broken: Promise<void>;
}

/** Connects to a port of the proxy and reads the greeting; rejects when the connection ends before. */
export const converse = (port: number, from?: string): Promise<Conversation> =>
  conversationOn(connect({ host: proxyAddress, port, ...sourceOf(from) }));

/** The same through a tunnel. */
export const converseThrough = async (port: number, authority: string): Promise<Conversation> => {
  const { answer, socket } = await openTunnel(port, authority);
  if (answer?.status !== 200) throw new Error(`CONNECT ${authority}: ${answer?.status}`);
  return conversationOn(socket, answer.body);
};

/** The same with TLS, to the server of a name. */
export const converseOverTls = (port: number, servername: string, ca: string, from?: string): Promise<Conversation> =>
  conversationOn(connectTls({ socket: connect({ host: proxyAddress, port, ...sourceOf(from) }), servername, ca }));

const conversationOn = async (socket: Socket, came = ''): Promise<Conversation> => {
  const reader = readerOf(socket, came);
  const server = await reader.until('greeting', (text) => {
    const end = text.indexOf('\n');
    return end === -1 ? undefined : { value: text.slice(0, end), rest: text.slice(end + 1) };
  });
  return {
    server,
    async echo(text) {
      socket.write(text);
      await reader.until('echo', (got) =>
        got.length < text.length ? undefined : { value: got, rest: got.slice(text.length) },
      );
    },
    get isBroken() {
      return reader.hasEnded;
    },
    broken: reader.ended,
    [Symbol.dispose]: () => socket.destroy(),
  };
};

/** An answer to a request; the body is as long as the answer says, or all there is. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends bytes to a port of the proxy and reads one answer; undefined when the proxy ends the connection without one. */
export const sendRaw = async (port: number, bytes: string | Buffer, from?: string): Promise<HttpAnswer | undefined> => {
  using client = keptClient(port, from);
  return await client.ask(bytes);
};

/** A client that keeps its connection from one request to the next. */
export interface KeptClient extends Disposable {
  /** Sends bytes and reads one answer; its body has all that came. */
  ask(bytes: string | Buffer): Promise<HttpAnswer | undefined>;
}

/** Connects to a port of the proxy, from a source address if one is given. */
export const keptClient = (port: number, from?: string): KeptClient => {
  const socket = connect({ host: proxyAddress, port, ...sourceOf(from) });
  const reader = readerOf(socket);
  return {
    ask(bytes) {
      socket.write(bytes);
      return answerOn(reader);
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
};

/** Asks for a CONNECT tunnel. With any status but 200 the socket is of no use. `asked` may be all lines of the request. */
export const openTunnel = async (
  port: number,
  asked: string | readonly string[],
  headers: readonly string[] = [],
  allowHalfOpen = false,
  from?: string,
): Promise<{ readonly answer: HttpAnswer | undefined; readonly socket: Socket }> => {
  const socket = connect({ host: proxyAddress, port, allowHalfOpen, ...sourceOf(from) });
  const lines = typeof asked === 'string' ? [`CONNECT ${asked} HTTP/1.1`, `Host: ${asked}`, ...headers] : asked;
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const answer = await answerOn(readerOf(socket));
  // Who takes the socket over listens for errors himself; until then none may end the process.
  socket.removeAllListeners('data');
  return { answer, socket };
};

/** Speaks TLS on a socket (or on a new one to a port of the proxy) and asks for `/` of a host over it. */
export const askOverTls = async (
  through: Socket | number,
  servername: string,
  ca: string,
): Promise<HttpAnswer | undefined> => {
  const at = typeof through === 'number' ? { host: proxyAddress, port: through } : { socket: through };
  const socket: TLSSocket = connectTls({ ...at, ca, ...(servername === '' ? {} : { servername }) });
  try {
    socket.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
    return await answerOn(readerOf(socket));
  } finally {
    socket.destroy();
  }
};

const answerOn = (reader: Reader): Promise<HttpAnswer | undefined> =>
  reader
    .until('answer', (text) => {
      const headEnd = text.indexOf('\r\n\r\n');
      if (headEnd === -1) return undefined;
      const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n');
      const headers = new Map(lines.map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', headerValue(line)]));
      const status = Number(first.split(' ')[1]);
      const length = headers.get('content-length');
      const rest = text.slice(headEnd + 4);
      if (length === undefined && status !== 200 && !reader.hasEnded) return undefined;
      if (length !== undefined && rest.length < Number(length)) return undefined;
      if (headers.get('transfer-encoding') === 'chunked' && !rest.endsWith('0\r\n\r\n')) return undefined;
      return { value: { status, headers, body: rest }, rest: '' };
    })
    .catch((error: unknown) => {
      if (error instanceof Ended) return undefined;
      throw error;
    });

const headerValue = (line: string): string => line.slice(line.indexOf(':') + 1).trim();

/** The other side ended the connection before what was waited for came. */
class Ended extends Error {}

interface Reader {
  readonly hasEnded: boolean;
  readonly ended: Promise<void>;
  /** Takes what it can use of the text that came and leaves the rest; tried again whenever more comes. */
  until<T>(what: string, take: (text: string) => { value: T; rest: string } | undefined): Promise<T>;
}

const readerOf = (socket: Socket, came = ''): Reader => {
  let text = came;
  let hasEnded = false;
  let wake = (): void => {};
  const end = Promise.withResolvers<void>();
  const finish = (): void => {
    hasEnded = true;
    end.resolve();
    wake();
  };
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    text += String(chunk);
    wake();
  });
  for (const event of ['end', 'close', 'error']) socket.on(event, finish);
  return {
    get hasEnded() {
      return hasEnded;
    },
    ended: end.promise,
    until: (what, take) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(
          () => stop(new Error(`no ${what} within ${LIMIT_MS} ms; came so far: ${text}`)),
          LIMIT_MS,
        );
        const stop = (error: Error): void => {
          clearTimeout(limit);
          wake = () => {};
          reject(error);
        };
        wake = () => {
          const taken = take(text);
          if (taken !== undefined) {
            clearTimeout(limit);
            wake = () => {};
            text = taken.rest;
            resolve(taken.value);
          } else if (hasEnded) stop(new Ended(`the connection ended before the ${what}; came so far: ${text}`));
        };
        wake();
      }),
  };
};
