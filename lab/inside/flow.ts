import { createSocket } from 'node:dgram';
import { createConnection } from 'node:net';

/**
 * One connection that is kept, of a kind that applications have. A flow never reconnects: what it reports is what became of
 * this one connection.
 *   ping-pong  TCP, a question and its answer every few milliseconds
 *   upload     TCP, only the client sends; the server tells at the end how much it got
 *   download   TCP, only the server sends
 *   udp        one socket, a question and its answer every few milliseconds
 */
export const flowKinds = ['ping-pong', 'upload', 'download', 'udp'] as const;
export type FlowKind = (typeof flowKinds)[number];

export interface FlowOptions {
  readonly kind: FlowKind;
  readonly host: string;
  readonly port: number;
  readonly everyMs: number;
  /** The port to send from; two pods with the same one make the gateway choose another for the second. */
  readonly localPort?: number;
}

/** What became of a flow. */
export interface FlowReport {
  readonly kind: FlowKind;
  readonly host: string;
  readonly localPort: number;
  /** The address and port that the outside saw, each once, in the order of time. Uploads and downloads are not told. */
  readonly seenAs: readonly string[];
  /** When the last sign of the other end came; absent if none did. Of an upload: when its count came. */
  readonly lastHeardAtMs?: number;
  /** The longest time without a sign of the other end, and its beginning. */
  readonly longestGap: { readonly fromMs: number; readonly ms: number };
  /** Why it ended, if it did not end by our will. */
  readonly failure?: string;
}

export interface Flow {
  report(): FlowReport;
  /** Ends it; waits for the count of an upload, a few seconds at the most. */
  stop(): Promise<FlowReport>;
}

const chunk = 512;
const countLimitMs = 8_000;

export function startFlow(options: FlowOptions): Flow {
  return options.kind === 'udp' ? startUdp(options) : startTcp(options);
}

/** What all kinds note. */
class Notes {
  readonly #seenAs = new Set<string>();
  #lastHeardAtMs: number | undefined;
  #gap = { fromMs: 0, ms: 0 };
  failure: string | undefined;
  localPort = 0;

  heard(seenAs?: string): void {
    const nowMs = Date.now();
    if (this.#lastHeardAtMs !== undefined && nowMs - this.#lastHeardAtMs > this.#gap.ms) {
      this.#gap = { fromMs: this.#lastHeardAtMs, ms: nowMs - this.#lastHeardAtMs };
    }
    this.#lastHeardAtMs = nowMs;
    if (seenAs !== undefined) this.#seenAs.add(seenAs);
  }

  report({ kind, host }: FlowOptions): FlowReport {
    return {
      kind,
      host,
      localPort: this.localPort,
      seenAs: [...this.#seenAs],
      longestGap: this.#gap,
      ...(this.#lastHeardAtMs === undefined ? {} : { lastHeardAtMs: this.#lastHeardAtMs }),
      ...(this.failure === undefined ? {} : { failure: this.failure }),
    };
  }
}

function startUdp(options: FlowOptions): Flow {
  const { host, port, everyMs, localPort = 0 } = options;
  const notes = new Notes();
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  socket.on('error', (error) => {
    notes.failure = error.message;
  });
  socket.on('message', (message) => notes.heard(placeIn(message.toString())));
  socket.bind(localPort, () => {
    notes.localPort = socket.address().port;
  });
  const timer = setInterval(() => socket.send('x', port, host), everyMs);
  return {
    report: () => notes.report(options),
    async stop() {
      clearInterval(timer);
      socket.close();
      return notes.report(options);
    },
  };
}

function startTcp(options: FlowOptions): Flow {
  const { kind, host, port, everyMs, localPort } = options;
  const notes = new Notes();
  const socket = createConnection({ host, port, ...(localPort === undefined ? {} : { localPort }) });
  let timer: NodeJS.Timeout | undefined;
  let sent = 0;
  let text = '';
  let isEnding = false;
  const done = Promise.withResolvers<void>();
  socket.setNoDelay(true);
  socket.on('connect', () => {
    notes.localPort = socket.localPort ?? 0;
    if (kind !== 'ping-pong') socket.write(`${kind} ${everyMs}\n`);
    if (kind === 'download') return;
    timer = setInterval(() => {
      // A dead connection must not fill the memory of the client.
      if (socket.writableLength > 1_000_000) return;
      const bytes = kind === 'upload' ? chunk : 1;
      sent += bytes;
      socket.write(Buffer.alloc(bytes, 'x'));
    }, everyMs);
  });
  socket.on('data', (data) => {
    if (kind === 'download') {
      notes.heard();
      return;
    }
    text += data;
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) notes.heard(kind === 'ping-pong' ? placeIn(line) : undefined);
    if (kind === 'upload' && lines.length > 0 && Number(lines[0]) !== sent) {
      notes.failure = `${lines[0]} of ${sent} bytes arrived`;
    }
  });
  socket.on('error', (error) => {
    notes.failure = 'code' in error ? String(error.code) : error.message;
  });
  socket.on('close', () => {
    clearInterval(timer);
    if (!isEnding) notes.failure ??= 'closed by the other end';
    done.resolve();
  });
  return {
    report: () => notes.report(options),
    async stop() {
      isEnding = true;
      clearInterval(timer);
      if (kind === 'upload') {
        const limit = setTimeout(() => {
          notes.failure ??= 'the count did not come';
          socket.destroy();
        }, countLimitMs);
        socket.end();
        await done.promise;
        clearTimeout(limit);
      } else socket.destroy();
      return notes.report(options);
    },
  };
}

/** `address:port` in an answer of the outside server; see lab/outside/server.ts. */
function placeIn(text: string): string {
  const { address, port } = JSON.parse(text) as { address: string; port: number };
  return `${address}:${port}`;
}
