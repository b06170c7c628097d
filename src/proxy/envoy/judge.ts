/**
 * Judge answers Envoy, for each new connection to a port or by server name, whether its client may use the rule. Envoy has one
 * filter that asks before it connects to a server, that of rate limits, and asks over gRPC: so this is a rate limit service
 * of one call on a socket file, which lets through or does not. Without an answer nobody is let through.
 */
import { rm } from 'node:fs/promises';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { type Ip, parseIp } from '../../core/ip/index.ts';
import { onStop } from '../../runtime/process/lifecycle.ts';
import { bytesField, fieldsOf } from './protobuf.ts';

/** Keys of the two words that a question has. */
export const CLIENT = 'client';
export const RULE = 'rule';

/** Longer than every question. */
const MOST_BYTES = 64 * 1024;
/** RateLimitResponse.overall_code: https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/service/ratelimit/v3/rls.proto */
const verdicts = { yes: answerOf(1), no: answerOf(2) } as const;

/** A new connection: the client with and without its port, and the id of the rule. */
export interface AccessQuestion {
  readonly client: Ip;
  readonly endpoint: string;
  readonly rule: string;
}

/** Answers on the socket file until the signal is aborted. */
export const runJudge = async (
  path: string,
  mayUse: (question: AccessQuestion) => boolean,
  signal: AbortSignal,
): Promise<void> => {
  await rm(path, { force: true });
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream) => serve(stream, mayUse));
  await listening(server, path);
  await onStop(signal, async () => {
    for (const session of sessions) session.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
};

const listening = (server: Http2Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });

const serve = (stream: ServerHttp2Stream, mayUse: (question: AccessQuestion) => boolean): void => {
  const chunks: Buffer[] = [];
  let length = 0;
  // Envoy has given up; nobody waits for an answer.
  stream.on('error', () => stream.destroy());
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) stream.destroy();
  });
  stream.on('end', () => {
    if (stream.destroyed) return;
    const question = questionOf(Buffer.concat(chunks));
    const isAllowed = question !== undefined && mayUse(question);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(isAllowed ? verdicts.yes : verdicts.no);
  });
};

/**
 * What a question asks: it is a frame of gRPC with a RateLimitRequest, whose descriptors (2) have entries (1) of key and value.
 * Undefined when it cannot be read.
 */
export const questionOf = (frame: Buffer): AccessQuestion | undefined => {
  const words = new Map<string, string>();
  for (const descriptor of fieldsOf(frame.subarray(5), 2)) {
    for (const entry of fieldsOf(descriptor, 1)) {
      const [key] = fieldsOf(entry, 1);
      const [value] = fieldsOf(entry, 2);
      if (key !== undefined && value !== undefined) words.set(key.toString('latin1'), value.toString('latin1'));
    }
  }
  const endpoint = words.get(CLIENT) ?? '';
  const rule = words.get(RULE);
  const [, address = ''] = ENDPOINT.exec(endpoint) ?? [];
  const client = parseIp(address);
  return client.ok && rule !== undefined ? { client: client.value, endpoint, rule } : undefined;
};
/** `10.244.1.7:40000` or `[fd00::7]:40000`. */
const ENDPOINT = /^\[?([0-9a-f.:]+)\]?:\d{1,5}$/;

/** A RateLimitResponse in a frame: the code is its first field. */
function answerOf(code: number): Buffer {
  return Buffer.from([0, 0, 0, 0, 2, 0x08, code]);
}

/** The same question as Envoy asks it, for tests. */
export const questionFrame = (client: string, rule: string): Buffer => {
  const entry = (key: string, value: string): Buffer =>
    bytesField(1, Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(value))]));
  const message = bytesField(2, Buffer.concat([entry(CLIENT, client), entry(RULE, rule)]));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};
