/**
 * DnsAuthority is the DNS outside the cluster: a server on UDP and TCP whose answers a test changes while it runs. It reads
 * and writes messages with code of its own, so that it cannot agree with a mistake in src/proxy/dns.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6 } from 'node:net';

/** What a name answers. Without addresses it exists and has none. */
export interface DnsRecord {
  readonly addresses: readonly string[];
  readonly ttlSeconds?: number;
  /** Answered first, with the addresses on this name. */
  readonly alias?: string;
}

export interface DnsAuthority extends AsyncDisposable {
  /** Sets what a name answers; a function is asked for every query. Absent: the name does not exist. */
  set(name: string, record: DnsRecord | (() => DnsRecord) | undefined): void;
  /** From now on names with this end get no answer at all. */
  silence(suffix: string): void;
  /** How often a name was asked for since the start. */
  queries(name: string): number;
}

const TYPE = { a: 1, cname: 5, aaaa: 28 } as const;
const CODE = { noError: 0, noName: 3 } as const;
const HEADER_BYTES = 12;

/** Starts it on an address, port 53 if not told otherwise. */
export const openDnsAuthority = async (address: string, port = 53): Promise<DnsAuthority> => {
  const records = new Map<string, DnsRecord | (() => DnsRecord)>();
  const asked = new Map<string, number>();
  const silent: string[] = [];
  const answer = (query: Buffer): Buffer | undefined => {
    const question = questionOf(query);
    asked.set(question.name, (asked.get(question.name) ?? 0) + 1);
    if (silent.some((suffix) => question.name.endsWith(suffix))) return undefined;
    const found = records.get(question.name);
    return messageOf(query, question, typeof found === 'function' ? found() : found);
  };
  const udp = createSocket(isIPv6(address) ? 'udp6' : 'udp4', (query, client) => {
    const reply = answer(query);
    if (reply !== undefined) udp.send(reply, client.port, client.address);
  });
  const tcp = createServer((socket) => {
    let buffered: Buffer = Buffer.alloc(0);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
        const end = 2 + buffered.readUInt16BE(0);
        const reply = answer(buffered.subarray(2, end));
        buffered = buffered.subarray(end);
        if (reply === undefined) continue;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(reply.length);
        socket.write(Buffer.concat([length, reply]));
      }
    });
  });
  udp.bind(port, address);
  tcp.listen(port, address);
  await Promise.all([once(udp, 'listening'), once(tcp, 'listening')]);
  return {
    set(name, record) {
      if (record === undefined) records.delete(name);
      else records.set(name, record);
    },
    silence(suffix) {
      silent.push(suffix);
    },
    queries: (name) => asked.get(name) ?? 0,
    async [Symbol.asyncDispose]() {
      udp.close();
      tcp.close();
      await Promise.all([once(udp, 'close'), once(tcp, 'close')]);
    },
  };
};

interface Question {
  readonly name: string;
  readonly type: number;
  /** Where the message goes on after the question. */
  readonly end: number;
}

const questionOf = (query: Buffer): Question => {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 };
};

const messageOf = (query: Buffer, question: Question, record: DnsRecord | undefined): Buffer => {
  const ttlSeconds = record?.ttlSeconds ?? 1;
  const answers: Buffer[] = [];
  if (record?.alias !== undefined) {
    answers.push(resourceOf(question.name, TYPE.cname, ttlSeconds, nameOf(record.alias)));
  }
  const owner = record?.alias ?? question.name;
  for (const address of record?.addresses ?? []) {
    const type = isIPv6(address) ? TYPE.aaaa : TYPE.a;
    if (type === question.type) answers.push(resourceOf(owner, type, ttlSeconds, bytesOf(address)));
  }
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  // An answer with authority, with the wish for recursion as it was asked.
  header.writeUInt16BE(
    0x8480 | (query.readUInt16BE(2) & 0x0100) | (record === undefined ? CODE.noName : CODE.noError),
    2,
  );
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  return Buffer.concat([header, query.subarray(HEADER_BYTES, question.end), ...answers]);
};

const resourceOf = (name: string, type: number, ttlSeconds: number, data: Buffer): Buffer => {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(ttlSeconds, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([nameOf(name), fixed, data]);
};

const nameOf = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ]);

const bytesOf = (address: string): Buffer => {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  // The last two groups may be written as an IPv4 address.
  const text = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  );
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]));
};
