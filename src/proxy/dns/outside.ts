/**
 * Outside resolvers: one question, asked until one of them answers it. Every try has a socket and an id of its own, so that
 * somebody who cannot see our packets has to guess both the port and the id (RFC 5452).
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { messageOf } from '../../runtime/process/bug.ts';
import { type Clock, withLimit } from '../../runtime/process/clock.ts';
import { type AddressType, decodeResponse, encodeQuery, type Response, rcodes, types } from './message.ts';

/** Where an outside resolver listens. */
export interface Nameserver {
  readonly host: string;
  /** 53 when absent. */
  readonly port?: number;
}

/** The outcome of a question: an answer that can be believed, or why there is none. */
export type QueryResult =
  | { readonly kind: 'answer'; readonly response: Response }
  | { readonly kind: 'failed'; readonly sentence: string };

/** The servers outside as a parameter. */
export interface Outside {
  ask(name: string, type: AddressType, signal: AbortSignal): Promise<QueryResult>;
}

export interface OutsideOptions {
  readonly nameservers: readonly Nameserver[];
  readonly clock: Clock;
  /** A whole number from 0 up to the given one, not included; must be hard to guess. */
  readonly randomInt: (limit: number) => number;
  /** How long one try may take (default 1 s). Each server gets two tries. */
  readonly tryMs?: number;
}

const ROUNDS = 2;

/** Asks each server in turn, the one that answered last first. */
export const outsideResolvers = ({ nameservers, clock, randomInt, tryMs = 1000 }: OutsideOptions): Outside => {
  let preferred = 0;
  return {
    async ask(name, type, signal) {
      const problems = new Set<string>();
      const start = preferred;
      for (let attempt = 0; attempt < ROUNDS * nameservers.length && !signal.aborted; attempt += 1) {
        const index = (start + attempt) % nameservers.length;
        const server = nameservers[index];
        if (server === undefined) break;
        try {
          const response = await askOne(server, name, type, randomInt(0x10000), clock, tryMs, signal);
          if (response.rcode === rcodes.ok || response.rcode === rcodes.nxdomain) {
            preferred = index;
            return { kind: 'answer', response };
          }
          problems.add(`${server.host} answers with code ${response.rcode}`);
        } catch (error) {
          problems.add(`${server.host}: ${messageOf(error)}`);
        }
      }
      const what = problems.size === 0 ? 'no resolver is configured' : [...problems].join('; ');
      return { kind: 'failed', sentence: what };
    },
  };
};

/** The world's fault while asking; never leaves this file. */
class NoAnswer extends Error {}

async function askOne(
  server: Nameserver,
  name: string,
  type: AddressType,
  id: number,
  clock: Clock,
  tryMs: number,
  signal: AbortSignal,
): Promise<Response> {
  const limit = { ms: tryMs, error: () => new NoAnswer(`no answer within ${tryMs} ms`), signal };
  const query = encodeQuery({ id, name, type });
  // An answer to another question is not an answer: it may be late, or forged.
  const fits = (response: Response): boolean =>
    response.id === id && response.name === name && response.type === types[type];
  const response = await withLimit(clock, limit, (ended) => overUdp(server, query, fits, ended));
  return response.isTruncated ? withLimit(clock, limit, (ended) => overTcp(server, query, fits, ended)) : response;
}

/** Sends a query and waits for the response that fits it, until the signal is aborted. */
type DnsExchange = (
  server: Nameserver,
  query: Buffer,
  fits: (response: Response) => boolean,
  signal: AbortSignal,
) => Promise<Response>;

const overUdp: DnsExchange = ({ host, port = 53 }, query, fits, signal) =>
  new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    const end = (): void => {
      signal.removeEventListener('abort', end);
      socket.removeAllListeners();
      // What the kernel still reports about a closed socket concerns nobody.
      socket.on('error', () => {});
      socket.close();
    };
    signal.addEventListener('abort', end, { once: true });
    socket.on('error', (error) => {
      end();
      reject(error);
    });
    socket.on('message', (bytes) => {
      const decoded = decodeResponse(bytes);
      // Garbage is waited out like silence, so that a forger cannot end the question.
      if (!decoded.ok || !fits(decoded.value)) return;
      end();
      resolve(decoded.value);
    });
    // Connected, so that the kernel drops what comes from another address and tells about a closed port at once.
    socket.connect(port, host, () => socket.send(query));
  });

const overTcp: DnsExchange = ({ host, port = 53 }, query, fits, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    let received: Buffer = Buffer.alloc(0);
    const end = (): void => {
      signal.removeEventListener('abort', end);
      socket.destroy();
    };
    const fail = (error: Error): void => {
      end();
      reject(error);
    };
    signal.addEventListener('abort', end, { once: true });
    socket.on('error', fail);
    socket.on('close', () => fail(new NoAnswer('the connection ended early')));
    socket.on('connect', () => socket.write(framed(query)));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const decoded = decodeResponse(received.subarray(2, 2 + received.readUInt16BE(0)));
      if (!decoded.ok) return fail(new NoAnswer(decoded.sentence));
      if (!fits(decoded.value) || decoded.value.isTruncated) return fail(new NoAnswer('an answer to another question'));
      end();
      resolve(decoded.value);
    });
  });

/** A message with its length before it, as TCP needs it (RFC 1035 section 4.2.2). */
export const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
};
