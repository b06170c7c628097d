import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AccessLine } from '../access-line.ts';
import { AccessLines } from './access-lines.ts';

const line: AccessLine = {
  bytesReceived: 10,
  bytesSent: 5,
  client: '10.244.1.1:40000',
  detail: '- via_upstream',
  host: 'a.test',
  kind: 'http',
  method: 'GET',
  ms: 3,
  refused: '',
  rule: 'team/egress/a',
  status: 200,
  time: '2026-11-15T12:00:00.000Z',
  upstream: '203.0.113.1:80',
};

/** What is handed on of lines, and what was counted. */
const pass = (...lines: readonly object[]) => {
  const handed: string[] = [];
  const access = new AccessLines((text) => handed.push(...text.trimEnd().split('\n')));
  // In pieces, as a pipe gives them.
  const bytes = Buffer.from(lines.map((each) => `${JSON.stringify(each)}\n`).join(''));
  for (let at = 0; at < bytes.length; at += 7) access.push(bytes.subarray(at, at + 7));
  return { handed: handed.map((text): AccessLine => JSON.parse(text)), refused: Object.fromEntries(access.refused) };
};

describe('access lines of Envoy', () => {
  it('are handed on as they are when all went well', () => {
    const tunnel = { ...line, kind: 'tcp', detail: '-  ' };
    assert.deepEqual(pass(line, tunnel), { handed: [line, tunnel], refused: {} });
  });

  it('count what a route refused', () => {
    const refused = { ...line, detail: '- direct_response', status: 403 };
    const told = { ...refused, refused: 'not-allowed' } as const;
    assert.deepEqual(pass({ ...refused, kind: 'http refused' }, { ...refused, kind: 'connect refused' }), {
      handed: [told, { ...told, kind: 'connect' }],
      refused: { 'not-allowed': 2 },
    });
  });

  for (const [detail, word] of [
    ['DPE http1.codec_error', 'malformed'],
    ['UH no_healthy_upstream', 'unreachable'],
    ['UF,URX upstream_reset_before_response_started', 'unreachable'],
    ['DF dns_resolution_failure', 'unreachable'],
    ['- request_header_timeout', 'slow'],
    ['NR route_not_found', 'not-allowed'],
  ] as const) {
    it(`say ${word} for ${detail}, and that it was HTTP when no route is known`, () => {
      const { handed, refused } = pass({ ...line, kind: undefined, rule: undefined, detail });
      assert.deepEqual(handed, [{ ...line, kind: 'http', rule: '', detail, refused: word }]);
      assert.deepEqual(refused, { [word]: 1 });
    });
  }

  it('are put right when a client sent what is no JSON', () => {
    const { host: _, time, ...rest } = line;
    const handed: string[] = [];
    const access = new AccessLines((text) => handed.push(text));
    for (const host of ['a"b\\', '"}', '\t', 'a","host":"b","rule":"other', '-']) {
      const head = JSON.stringify({ time, ...rest, kind: 'http refused', rule: '-', upstream: '-' }).slice(0, -1);
      access.push(Buffer.from(`${head.replace('- via_upstream', '- direct_response')},"host":"${host}"}\n`));
    }
    const told = handed.map((text): AccessLine => JSON.parse(text));
    assert.deepEqual(
      told.map(({ host }) => host),
      ['a"b\\', '"}', '\t', 'a","host":"b","rule":"other', ''],
    );
    for (const each of told) assert.deepEqual([each.rule, each.upstream, each.refused], ['', '', 'not-allowed']);
  });

  it('say nothing of connections that the client or the server ended', () => {
    assert.deepEqual(pass({ ...line, detail: 'DC downstream_remote_disconnect' }).refused, {});
  });

  it('are forgotten in part when the program that wrote them is gone', () => {
    const handed: string[] = [];
    const access = new AccessLines((text) => handed.push(text));
    access.push(Buffer.from('{"half":'));
    access.restart();
    access.push(Buffer.from(`${JSON.stringify(line)}\n`));
    assert.equal(handed.length, 1);
  });
});
