import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { AccessLine } from '../engine/access-line.ts';
import { AccessLines } from './access-lines.ts';
import { accessLogsAt } from './access-log.ts';

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
  const access = new AccessLines((text) => handed.push(...text.toString().trimEnd().split('\n')));
  access.take(Buffer.from(lines.map((each) => `${JSON.stringify(each)}\n`).join('')));
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
    const access = new AccessLines((text) => handed.push(text.toString()));
    for (const host of ['a"b\\', '"}', '\t', 'a","host":"b","rule":"other', '-']) {
      const head = JSON.stringify({ time, ...rest, kind: 'http refused', rule: '-', upstream: '-' }).slice(0, -1);
      access.take(Buffer.from(`${head.replace('- via_upstream', '- direct_response')},"host":"${host}"}\n`));
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

  it('are whole JSON, also when only half a line was written', () => {
    assert.deepEqual(
      passed('{"half":', wellLine, '', wellLine.slice(0, 80)).map((text): AccessLine => JSON.parse(text).detail),
      ['{"half":', '- via_upstream', wellLine.slice(0, 80)],
    );
  });
});

/** What Envoy writes of a request, by the format that it is given. */
const written = (values: Readonly<Record<string, string>>): string => {
  const [log] = accessLogsAt('/run/access.log').http;
  const text = /"inline_string":("(?:[^"\\]|\\.)*")/.exec(JSON.stringify(log))?.[1] ?? '';
  return JSON.parse(text)
    .trimEnd()
    .replaceAll(/%([A-Z_]+(?:\(:[A-Z]+\))?)%/g, (_: string, name: string) => values[name] ?? '-');
};
const well = {
  START_TIME: line.time,
  DOWNSTREAM_REMOTE_ADDRESS: line.client,
  UPSTREAM_REMOTE_ADDRESS: line.upstream,
  UPSTREAM_CLUSTER: line.rule,
  UPSTREAM_WIRE_BYTES_SENT: '5',
  UPSTREAM_WIRE_BYTES_RECEIVED: '10',
  DURATION: '3',
  ROUTE_NAME: 'http',
  'REQ(:AUTHORITY)': line.host,
  'REQ(:METHOD)': line.method,
  RESPONSE_CODE: '200',
  RESPONSE_FLAGS: '-',
  RESPONSE_CODE_DETAILS: 'via_upstream',
};
const wellLine = written(well);

/** What is handed on of lines of text. */
const passed = (...lines: readonly string[]): string[] => {
  const handed: Buffer[] = [];
  new AccessLines((more) => handed.push(more)).take(Buffer.from(lines.map((each) => `${each}\n`).join('')));
  assert.equal(handed.length, 1);
  return Buffer.concat(handed).toString().trimEnd().split('\n');
};

describe('a line of the HTTP proxy', () => {
  it('has every field', () => {
    assert.deepEqual(JSON.parse(wellLine), line);
  });

  it('is not touched when the request went well, whatever lines are around it', () => {
    const refused = {
      ...well,
      ROUTE_NAME: 'http refused',
      RESPONSE_CODE_DETAILS: 'direct_response',
      RESPONSE_CODE: '403',
    };
    fc.assert(
      fc.property(fc.array(fc.constantFrom(well, refused), { minLength: 1 }), fc.string(), (values, host) => {
        const hosted = values.map((each) =>
          each === well ? each : { ...each, 'REQ(:AUTHORITY)': host.replaceAll(/[\r\n]/g, '') },
        );
        const lines = passed(...hosted.map(written));
        assert.deepEqual(
          lines.map((text) => (text === wellLine ? '' : (JSON.parse(text) as AccessLine).refused)),
          values.map((each) => (each === well ? '' : 'not-allowed')),
        );
      }),
    );
  });
});
