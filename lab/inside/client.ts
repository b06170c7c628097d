import { createSocket } from 'node:dgram';
import { createConnection, type Socket } from 'node:net';
import { type Outage, Outages } from './outages.ts';

/** Whom to ask, and how. */
export interface Question {
  readonly transport: 'tcp' | 'udp';
  readonly host: string;
  readonly port: number;
  readonly limitMs: number;
  /** Bytes to send; more than the MTU makes fragments of a datagram. */
  readonly bytes?: number;
}

/** What came back: the address from which the outside saw the question, or why there was no answer. */
export type Answer = { readonly address: string; readonly port: number } | { readonly failure: string };

/** What a stream of questions has seen so far. */
export interface Tally {
  readonly asked: number;
  /** Answers by the address that the outside saw. */
  readonly answers: Readonly<Record<string, number>>;
  /** When the first question that was answered with an address was asked, in milliseconds since 1970, by address. */
  readonly firstAskedAtMs: Readonly<Record<string, number>>;
  /** When the last question that was answered was asked; absent if none was. */
  readonly lastAskedAtMs?: number;
  /** Failures by their text. */
  readonly failures: Readonly<Record<string, number>>;
  /** How often a kept connection had to be opened again. One that finds nobody for a while counts each time. */
  readonly reopened: number;
  /** How many of the kept connections had to be opened again, however often. */
  readonly broken: number;
  /** Times in which questions over new connections failed, by when they were asked. */
  readonly outages: readonly Outage[];
}

/** Asks once, over a connection of its own. Never rejects. */
export function ask(question: Question): Promise<Answer> {
  return question.transport === 'tcp' ? askTcp(question) : askUdp(question);
}

function askTcp({ host, port, limitMs, bytes = 1 }: Question): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connectTo({ host, port, limitMs });
    let text = '';
    const done = (answer: Answer): void => {
      clearTimeout(limit);
      socket.destroy();
      resolve(answer);
    };
    const limit = setTimeout(() => done({ failure: 'no answer' }), limitMs);
    socket.on('connect', () => socket.write(Buffer.alloc(bytes, 'x')));
    socket.on('error', (error) => done({ failure: codeOf(error) }));
    socket.on('data', (chunk) => {
      text += chunk;
      const line = text.indexOf('\n');
      if (line >= 0) done(readAnswer(text.slice(0, line)));
    });
  });
}

/**
 * Connects, to each address of a name in turn. Node gives up the first one after half a second, sooner than the kernel sends a
 * lost SYN again; here it has half of the time.
 */
const connectTo = ({ host, port, limitMs }: Pick<Question, 'host' | 'port' | 'limitMs'>): Socket =>
  createConnection({ host, port, autoSelectFamilyAttemptTimeout: limitMs / 2 });

// Below those that the kernel chooses from.
const firstPort = 10_000;
const portCount = 20_000;
let portsUsed = Math.floor(Math.random() * portCount);

/**
 * A port for one datagram. The kernel chooses by chance, and one that was used a minute ago belongs to a connection that conntrack
 * still knows: it would leave with the address that this had.
 */
const freshPort = (): number => {
  portsUsed += 1;
  return firstPort + (portsUsed % portCount);
};

function askUdp({ host, port, limitMs, bytes = 1 }: Question): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    const done = (answer: Answer): void => {
      clearTimeout(limit);
      socket.close();
      resolve(answer);
    };
    const limit = setTimeout(() => done({ failure: 'no answer' }), limitMs);
    socket.on('error', (error) => done({ failure: codeOf(error) }));
    socket.on('message', (message) => done(readAnswer(message.toString())));
    socket.bind(freshPort());
    socket.send(Buffer.alloc(bytes, 'x'), port, host);
  });
}

/** How a stream asks. */
export interface StreamOptions {
  readonly everyMs: number;
  /** True: connections are kept open; false: each question has a new one. */
  readonly isKept: boolean;
  /** How many kept connections ask at the same time; one when absent. */
  readonly connections?: number;
}

/** Asks all the time until it is stopped: with a new connection each time, or with some that are kept. */
export class Stream {
  readonly #question: Question;
  readonly #isKept: boolean;
  readonly #timer: NodeJS.Timeout;
  readonly #answers: Record<string, number> = {};
  readonly #failures: Record<string, number> = {};
  readonly #firstAskedAtMs: Record<string, number> = {};
  readonly #outages = new Outages();
  #lastAskedAtMs = 0;
  #asked = 0;
  readonly #kept: (Socket | undefined)[];
  /** How often each was opened. */
  readonly #opened: number[];

  constructor(question: Question, { everyMs, isKept, connections = 1 }: StreamOptions) {
    this.#question = question;
    this.#isKept = isKept;
    this.#kept = Array.from({ length: connections }, () => undefined);
    this.#opened = Array.from({ length: connections }, () => 0);
    this.#timer = setInterval(() => this.#tick(), everyMs);
  }

  tally(): Tally {
    return {
      asked: this.#asked,
      answers: this.#answers,
      firstAskedAtMs: this.#firstAskedAtMs,
      ...(this.#lastAskedAtMs === 0 ? {} : { lastAskedAtMs: this.#lastAskedAtMs }),
      failures: this.#failures,
      reopened: this.#opened.reduce((sum, times) => sum + Math.max(0, times - 1), 0),
      broken: this.#opened.filter((times) => times > 1).length,
      outages: this.#outages.list(),
    };
  }

  stop(): Tally {
    clearInterval(this.#timer);
    for (const socket of this.#kept) socket?.destroy();
    return this.tally();
  }

  #tick(): void {
    if (!this.#isKept) {
      this.#asked += 1;
      const askedAtMs = Date.now();
      ask(this.#question).then((answer) => {
        this.#count(answer);
        this.#outages.add(askedAtMs, !('failure' in answer));
        if (!('failure' in answer)) {
          const first = this.#firstAskedAtMs[answer.address] ?? askedAtMs;
          this.#firstAskedAtMs[answer.address] = Math.min(first, askedAtMs);
          this.#lastAskedAtMs = Math.max(this.#lastAskedAtMs, askedAtMs);
        }
      });
      return;
    }
    for (let index = 0; index < this.#kept.length; index += 1) {
      this.#asked += 1;
      this.#keep(index).write('x');
    }
  }

  /** The connection with this number, opened if it is not open. */
  #keep(index: number): Socket {
    const kept = this.#kept[index] ?? this.#open(index);
    this.#kept[index] = kept;
    return kept;
  }

  #open(index: number): Socket {
    this.#opened[index] = (this.#opened[index] ?? 0) + 1;
    const socket = connectTo(this.#question);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
      for (let line = text.indexOf('\n'); line >= 0; line = text.indexOf('\n')) {
        this.#count(readAnswer(text.slice(0, line)));
        text = text.slice(line + 1);
      }
    });
    socket.on('error', (error) => this.#count({ failure: codeOf(error) }));
    socket.on('close', () => {
      if (this.#kept[index] === socket) this.#kept[index] = undefined;
    });
    return socket;
  }

  #count(answer: Answer): void {
    const [table, key] =
      'failure' in answer ? [this.#failures, answer.failure] : ([this.#answers, answer.address] as const);
    table[key] = (table[key] ?? 0) + 1;
  }
}

function readAnswer(text: string): Answer {
  // The outside server of the lab writes this; see lab/outside/server.ts.
  const { address, port } = JSON.parse(text) as { address: string; port: number };
  return { address, port };
}

const codeOf = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.message;
