import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { AccessLine } from '../engine/access-line.ts';
import { Counts } from './counts.ts';
import { finalFormat, httpWords } from './log-format.ts';
import { LogReader } from './log-reader.ts';

const rule = 'team/egress/api';
const usual = {
  msec: '1700000010.500',
  request_time: '0.250',
  remote_addr: '10.244.1.1',
  remote_port: '40000',
  upstream_bytes_sent: '100',
  upstream_bytes_received: '2000',
  http_host: 'api.test',
  upstream_addr: '203.0.113.1:80',
  request_method: 'GET',
  status: '200',
};
type Values = Readonly<Record<string, string>>;
/** What nginx writes for a format. */
const written = (format: string, values: Values): string =>
  `${format.replaceAll(/\$\{?([a-z_]+)\}?/g, (_, name: string) => values[name] ?? '')}\n`;
const final = (values: Values = {}, id = rule): string => written(finalFormat(id), { ...usual, ...values });
const told = (values: Values = {}): string =>
  written(httpWords, { ...usual, rule: 'r1', shown: 'api.test', asked_method: 'GET', status: '502', ...values });

const read = (...chunks: readonly string[]) => {
  const counts = new Counts();
  const handed: string[] = [];
  const idOf = (key: string): string | undefined => (key === 'r1' ? rule : undefined);
  const reader = new LogReader({ idOf, counts, handOn: (lines) => handed.push(lines.toString()) });
  for (const chunk of chunks) reader.take(Buffer.from(chunk, 'latin1'));
  const text = handed.join('');
  assert.ok(text === '' || text.endsWith('\n'));
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AccessLine);
  return { lines, handed, counts: counts.reading([], [], () => []) };
};

describe('LogReader', () => {
  it('gives a line that is final its time, and counts it', () => {
    const { lines, counts } = read(final());
    assert.deepEqual(lines, [
      {
        time: '2023-11-14T22:13:30.250Z',
        ms: 250,
        client: '10.244.1.1:40000',
        rule,
        bytesSent: 100,
        bytesReceived: 2000,
        kind: 'http',
        host: 'api.test',
        upstream: '203.0.113.1:80',
        method: 'GET',
        status: 200,
        refused: '',
        detail: '',
      },
    ]);
    assert.deepEqual(counts.rules.get(rule), { actives: 0, connections: 1, bytesSent: 100, bytesReceived: 2000 });
  });

  it('knows the rules of lines apart, also when one begins like another', () => {
    const ids = ['a/b/c', 'a/b/cd', 'a/b/c', 'a/b', 'a/b/d', 'a/b/cd'];
    const { lines, counts } = read(ids.map((id) => final({}, id)).join(''), final({}, 'a/b/c'));
    assert.deepEqual(
      lines.map((line) => line.rule),
      [...ids, 'a/b/c'],
    );
    assert.deepEqual(
      ['a/b/c', 'a/b/cd', 'a/b', 'a/b/d'].map((id) => counts.rules.get(id)?.connections),
      [3, 2, 1, 1],
    );
  });

  it('writes lines anew that are not final, in their place', () => {
    const { lines, handed, counts } = read(final() + told({ upstream_header_time: '-' }) + final({ status: '404' }));
    assert.deepEqual(
      lines.map(({ status, refused }) => [status, refused]),
      [
        [200, ''],
        [502, 'unreachable'],
        [404, ''],
      ],
    );
    assert.equal(handed.length, 1);
    assert.deepEqual(counts.refused, new Map([['unreachable', 1]]));
    assert.equal(counts.rules.get(rule)?.connections, 3);
  });

  it('adds up the bytes of several servers that were tried, and takes none for none', () => {
    const several = {
      upstream_addr: '203.0.113.1:80, 203.0.113.2:80',
      upstream_bytes_sent: '0, 100',
      upstream_bytes_received: '0, 30',
    };
    const none = { upstream_addr: '', upstream_bytes_sent: '', upstream_bytes_received: '', status: '499' };
    const { lines } = read(final(several) + final(none));
    assert.deepEqual(
      lines.map((line) => [line.time, line.rule, line.upstream, line.bytesSent, line.bytesReceived, line.refused]),
      [
        ['2023-11-14T22:13:30.250Z', rule, '203.0.113.2:80', 100, 30, ''],
        ['2023-11-14T22:13:30.250Z', rule, '', 0, 0, ''],
      ],
    );
  });

  it('puts the address of an IPv6 client in brackets', () => {
    const { lines, counts } = read(final({ remote_addr: '2001:db8::5' }));
    assert.equal(lines[0]?.client, '[2001:db8::5]:40000');
    assert.equal(counts.rules.get(rule)?.connections, 1);
  });

  it('leaves out what is no line, and hands nothing on when there is nothing', () => {
    assert.deepEqual(read('{"time":\n', '\n', '{}\n', 'x\n').handed, []);
    fc.assert(
      fc.property(fc.uint8Array(), fc.nat({ max: 200 }), (bytes, cut) => {
        const odd = Buffer.from(bytes).toString('latin1');
        const half = final().slice(0, cut).replaceAll('\n', '');
        assert.deepEqual(read(`${odd.replaceAll('\n', '')}x\n${half}\n${final()}`).lines.at(-1)?.rule, rule);
      }),
    );
  });

  it('says of a final line what it says of the same one in words', () => {
    const number = fc.nat({ max: 5_000_000_000 }).map(String);
    const seconds = (most: number) =>
      fc.nat({ max: most }).map((ms) => `${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, '0')}`);
    const values = fc.record({
      msec: fc.nat({ max: 8_000_000_000_000 }).map((more) => {
        const ms = 1_100_000_000_000 + more;
        return `${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, '0')}`;
      }),
      request_time: seconds(100_000),
      remote_addr: fc.constantFrom('10.244.1.1', '2001:db8::5'),
      upstream_bytes_sent: number,
      upstream_bytes_received: number,
      status: fc.constantFrom('200', '204', '301', '403', '404', '502'),
    });
    fc.assert(
      fc.property(fc.array(values, { minLength: 1, maxLength: 5 }), (all) => {
        const inWords = read(all.map((one) => told({ upstream_header_time: '0.001', ...one })).join(''));
        const asFinal = read(all.map((one) => final(one)).join(''));
        const withoutDetail = (line: AccessLine) => ({ ...line, detail: '' });
        assert.deepEqual(asFinal.lines.map(withoutDetail), inWords.lines.map(withoutDetail));
        assert.deepEqual(asFinal.counts, inWords.counts);
      }),
    );
  });
});
