/**
 * The DNS messages that the guarding resolver speaks: questions for addresses and their answers. Read Query and Response
 * first. Strict in both directions: what is not one well-formed question, or not its answer, is refused as a value.
 */
import { type Ip, ipBytes, ipOfBytes, isIpv4 } from '../../core/ip/index.ts';
import { Malformed, WireReader, WireWriter } from './wire.ts';

/** Record types by name (RFC 1035, 3596, 6891). */
export const types = { A: 1, CNAME: 5, SOA: 6, AAAA: 28, OPT: 41 } as const;
/** The types that are asked for. */
export type AddressType = 'A' | 'AAAA';
/** Response codes by name (RFC 1035 section 4.1.1). */
export const rcodes = { ok: 0, malformed: 1, failed: 2, nxdomain: 3, notImplemented: 4, refused: 5 } as const;
export type Rcode = keyof typeof rcodes;

/** A question as it came from a client. */
export interface Query {
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly isInternet: boolean;
  readonly isRecursionDesired: boolean;
  /** The UDP size of a client that speaks EDNS. */
  readonly payloadBytes: number | undefined;
}

/** What a server outside answered. */
export interface Response {
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly rcode: number;
  readonly isTruncated: boolean;
  readonly records: readonly DnsAnswer[];
  /** How long "there is none" may be believed (RFC 2308), in seconds. */
  readonly negativeSeconds: number | undefined;
}

/** A record of the answer section that matters; all others are left out. */
export type DnsAnswer =
  | { readonly kind: 'alias'; readonly name: string; readonly ttlSeconds: number; readonly target: string }
  | {
      readonly kind: 'address';
      readonly name: string;
      readonly ttlSeconds: number;
      readonly type: AddressType;
      /** Undefined for an address that nobody may name, such as an IPv4-mapped one. */
      readonly ip: Ip | undefined;
    };

export type DecodeResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly sentence: string };

const flag = { response: 0x8000, truncated: 0x0200, recursionDesired: 0x0100, recursionAvailable: 0x0080 } as const;
const OPCODE_MASK = 0x7800;
const RCODE_MASK = 0x000f;
const INTERNET = 1;
/** Fits into every path without fragments (DNS flag day 2020). */
export const ednsBytes = 1232;
/** What a client without EDNS takes over UDP. */
export const plainBytes = 512;
/** More records than any address answer has; each costs a little time. */
const MAX_RECORDS = 512;

/** Reads a question. Its first two bytes are its id even when the rest is malformed. */
export const decodeQuery = (bytes: Buffer): DecodeResult<Query> =>
  decoded(() => {
    const reader = new WireReader(bytes);
    const { id, flags, counts } = header(reader);
    if ((flags & flag.response) !== 0) throw new Malformed('an answer where a question is expected');
    if ((flags & OPCODE_MASK) !== 0) throw new Malformed('an operation other than a question');
    if (counts.questions !== 1) throw new Malformed(`${counts.questions} questions instead of one`);
    if (counts.answers + counts.authorities > 0) throw new Malformed('a question that brings answers');
    const name = reader.domain();
    const type = reader.number(2);
    const isInternet = reader.number(2) === INTERNET;
    let payloadBytes: number | undefined;
    for (let count = counts.additionals; count > 0; count -= 1) {
      const record = recordHead(reader);
      reader.bytes(record.size);
      if (record.type === types.OPT) payloadBytes = record.classNumber;
    }
    if (!reader.isAtEnd) throw new Malformed('bytes after the message');
    return { id, name, type, isInternet, isRecursionDesired: (flags & flag.recursionDesired) !== 0, payloadBytes };
  });

/** Reads an answer. A truncated one may end anywhere after its question. */
export const decodeResponse = (bytes: Buffer): DecodeResult<Response> =>
  decoded(() => {
    const reader = new WireReader(bytes);
    const { id, flags, counts } = header(reader);
    if ((flags & flag.response) === 0) throw new Malformed('a question where an answer is expected');
    if (counts.questions !== 1) throw new Malformed(`${counts.questions} questions instead of one`);
    if (counts.answers > MAX_RECORDS) throw new Malformed('too many records');
    const name = reader.domain();
    const type = reader.number(2);
    if (reader.number(2) !== INTERNET) throw new Malformed('a class other than internet');
    const head = { id, name, type, rcode: flags & RCODE_MASK };
    if ((flags & flag.truncated) !== 0) return { ...head, isTruncated: true, records: [], negativeSeconds: undefined };
    const records = Array.from({ length: counts.answers }, () => answer(reader)).filter((one) => one !== undefined);
    let negativeSeconds: number | undefined;
    for (let count = Math.min(counts.authorities, MAX_RECORDS); count > 0; count -= 1) {
      const record = recordHead(reader);
      const data = reader.slice(record.size);
      if (record.type === types.SOA) negativeSeconds = Math.min(record.ttlSeconds, soaMinimum(data));
    }
    return { ...head, isTruncated: false, records, negativeSeconds };
  });

/** A question for a server outside, with EDNS so that long answers need no second try. */
export const encodeQuery = (question: { id: number; name: string; type: AddressType }): Buffer =>
  optRecord(
    new WireWriter()
      .number(question.id, 2)
      .number(flag.recursionDesired, 2)
      .number(1, 2)
      .number(0, 2)
      .number(0, 2)
      .number(1, 2)
      .domain(question.name)
      .number(types[question.type], 2)
      .number(INTERNET, 2),
  ).finish();

/** What a client is told: the addresses directly under its own question, whatever aliases led there. */
export interface Reply {
  readonly rcode: Rcode;
  readonly ips: readonly Ip[];
  readonly ttlSeconds: number;
}

/** The answer to a client. One that is longer than `limitBytes` is sent without records and marked as truncated. */
export const encodeReply = (query: Query, reply: Reply, limitBytes: number): Buffer => {
  const whole = replyBytes(query, reply, false);
  return whole.length <= limitBytes ? whole : replyBytes(query, { ...reply, ips: [] }, true);
};

/** The answer to bytes that are no question; undefined when not even an id is there. */
export const encodeMalformed = (bytes: Buffer): Buffer | undefined =>
  bytes.length < 12 || (bytes.readUInt16BE(2) & flag.response) !== 0
    ? undefined
    : Buffer.concat([bytes.subarray(0, 2), Buffer.from([flag.response >> 8, rcodes.malformed]), Buffer.alloc(8)]);

const replyBytes = (query: Query, { rcode, ips, ttlSeconds }: Reply, isTruncated: boolean): Buffer => {
  const flags =
    flag.response |
    flag.recursionAvailable |
    (isTruncated ? flag.truncated : 0) |
    (query.isRecursionDesired ? flag.recursionDesired : 0) |
    rcodes[rcode];
  const hasEdns = query.payloadBytes !== undefined;
  const writer = new WireWriter()
    .number(query.id, 2)
    .number(flags, 2)
    .number(1, 2)
    .number(ips.length, 2)
    .number(0, 2)
    .number(hasEdns ? 1 : 0, 2)
    .domain(query.name)
    .number(query.type, 2)
    .number(query.isInternet ? INTERNET : 255, 2);
  for (const ip of ips) {
    const data = ipBytes(ip);
    // A pointer to the question, which always starts behind the header of twelve bytes.
    writer.number(0xc00c, 2).number(isIpv4(ip) ? types.A : types.AAAA, 2);
    writer.number(INTERNET, 2).number(ttlSeconds, 4).number(data.length, 2).bytes(data);
  }
  return (hasEdns ? optRecord(writer) : writer).finish();
};

const optRecord = (writer: WireWriter): WireWriter =>
  writer.domain('').number(types.OPT, 2).number(ednsBytes, 2).number(0, 4).number(0, 2);

const header = (reader: WireReader) => ({
  id: reader.number(2),
  flags: reader.number(2),
  counts: {
    questions: reader.number(2),
    answers: reader.number(2),
    authorities: reader.number(2),
    additionals: reader.number(2),
  },
});

const recordHead = (reader: WireReader) => ({
  name: reader.domain(),
  type: reader.number(2),
  classNumber: reader.number(2),
  // The highest bit set means zero (RFC 2181 section 8).
  ttlSeconds: ((ttl) => (ttl > 0x7fffffff ? 0 : ttl))(reader.number(4)),
  size: reader.number(2),
});

const answer = (reader: WireReader): DnsAnswer | undefined => {
  const { name, type, classNumber, ttlSeconds, size } = recordHead(reader);
  const data = reader.slice(size);
  if (classNumber !== INTERNET) return undefined;
  if (type === types.CNAME) {
    const target = data.domain();
    if (!data.isAtEnd) throw new Malformed('an alias with more than a name');
    return { kind: 'alias', name, ttlSeconds, target };
  }
  if (type !== types.A && type !== types.AAAA) return undefined;
  const expected = type === types.A ? 4 : 16;
  if (size !== expected) throw new Malformed(`an address of ${size} bytes`);
  return {
    kind: 'address',
    name,
    ttlSeconds,
    type: type === types.A ? 'A' : 'AAAA',
    ip: ipOfBytes(data.bytes(expected)),
  };
};

const soaMinimum = (data: WireReader): number => {
  data.domain();
  data.domain();
  data.bytes(16);
  return data.number(4);
};

const decoded = <T>(read: () => T): DecodeResult<T> => {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, sentence: error.message };
    throw error;
  }
};
