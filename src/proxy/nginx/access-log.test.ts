import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LineReader } from './access-log.ts';

const reader = new LineReader((key) => (key === 'r1' ? 'team/egress/db' : undefined));
const http = (
  fields: Partial<Record<'key' | 'host' | 'upstream' | 'method' | 'status' | 'sent' | 'answered', string>>,
) =>
  reader.read(
    JSON.stringify([
      'http',
      fields.key ?? 'r1',
      '::ffff:10.244.1.1',
      '40000',
      fields.host ?? 'api.test',
      fields.upstream ?? '203.0.113.1:80',
      fields.method ?? 'GET',
      fields.status ?? '200',
      fields.sent ?? '100',
      '2000',
      '1700000010.500',
      '0.250',
      fields.answered ?? '0.100',
    ]),
  );
const stream = (kind: string, key: string, host: string, upstream: string, status: string, seconds = '1.0') =>
  reader.read(
    JSON.stringify([
      kind,
      key,
      '2001:db8::5',
      '9',
      host,
      upstream,
      '',
      status,
      '1, 2',
      '3 : 4',
      '1700000010.500',
      seconds,
      '',
    ]),
  );

describe("a line of nginx's log", () => {
  it('becomes a line of the access log', () => {
    assert.deepEqual(http({}), {
      time: '2023-11-14T22:13:30.250Z',
      kind: 'http',
      rule: 'team/egress/db',
      client: '10.244.1.1:40000',
      host: 'api.test',
      upstream: '203.0.113.1:80',
      method: 'GET',
      status: 200,
      bytesSent: 100,
      bytesReceived: 2000,
      ms: 250,
      refused: '',
      detail: '',
    });
  });

  it('names the last of several addresses and adds up the bytes of all', () => {
    const line = stream('tcp', 'r1', '', '203.0.113.2:5000, [2001:db8::1]:5000', '200');
    assert.deepEqual([line?.upstream, line?.bytesSent, line?.bytesReceived], ['[2001:db8::1]:5000', 3, 7]);
    assert.deepEqual([line?.client, line?.status], ['[2001:db8::5]:9', 0]);
  });

  const refusals: readonly [string, ReturnType<typeof http>, string][] = [
    ['what no rule allows', http({ key: '', status: '403', answered: '' }), 'not-allowed'],
    ['a tunnel', http({ key: '', method: 'CONNECT', status: '400', answered: '' }), 'not-allowed'],
    ['a bad request of an allowed host', http({ status: '400', answered: '' }), 'malformed'],
    ['a slow request', http({ key: '', status: '408', answered: '' }), 'slow'],
    ['an allowed host that nobody answers for', http({ status: '502', answered: '-' }), 'unreachable'],
    ['one that was tried twice in vain', http({ status: '504', answered: '-, -' }), 'unreachable'],
    ['a 502 of the server itself', http({ status: '502', answered: '0.010' }), ''],
    ['a 403 of the server itself', http({ status: '403', answered: '0.010' }), ''],
    ['a connection to nobody', stream('tcp', 'r1', '', '203.0.113.1:5000', '502'), 'unreachable'],
    ['a server name without a rule', stream('sni', '', 'x.test', 'unix:/run/nobody.sock', '200'), 'not-allowed'],
    ['no server name in time', stream('sni', '', '', '', '200', '10.001'), 'slow'],
    ['no server name at all', stream('sni', '', '', '', '200', '0.1'), 'malformed'],
  ];
  for (const [what, line, word] of refusals) it(`calls ${what} "${word}"`, () => assert.equal(line?.refused, word));

  it('shows no address for our own sockets and for names', () => {
    assert.equal(stream('sni', '', 'x.test', 'unix:/run/nobody.sock', '200')?.upstream, '');
    assert.equal(http({ upstream: 'api.test' })?.upstream, '');
    assert.equal(http({ upstream: '-' })?.upstream, '');
  });

  it('begins when it began, also in the second before the last line', () => {
    const began = (end: string, lasted: string) =>
      reader.read(JSON.stringify(['tcp', 'r1', '10.0.0.1', '9', '', '', '', '200', '1', '2', end, lasted, '']))?.time;
    assert.equal(began('1700000010.500', '0.250'), '2023-11-14T22:13:30.250Z');
    assert.equal(began('1700000010.500', '1.499'), '2023-11-14T22:13:29.001Z');
    assert.equal(began('1700000010.000', '0.000'), '2023-11-14T22:13:30.000Z');
  });

  it('is left out when it is not ours, whatever it holds', () => {
    assert.equal(reader.read('["http","r1"'), undefined);
    assert.equal(reader.read('{}'), undefined);
    fc.assert(fc.property(fc.string(), (text) => assert.equal(reader.read(text), undefined)));
  });
});
