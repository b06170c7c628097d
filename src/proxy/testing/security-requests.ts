/** Bad requests and bad connections. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { eventually } from '../../runtime/testing/eventually.ts';
import { askOverTls, openTunnel, proxyAddress, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { absolute } from './conformance-http.ts';
import { scenario as minedScenario, ports } from './minefield.ts';

/** A request with a body, line by line. */
const lines = (...parts: readonly string[]): string => parts.join('\r\n');
const send = (bytes: string) => () => sendRaw(ports.http, bytes);
const tunnel =
  (authority: string, headers: readonly string[] = []) =>
  async () => {
    const { answer, socket } = await openTunnel(ports.http, authority, headers);
    socket.destroy();
    return answer;
  };

/** A second request for a server that must not be reached, as an attacker hides it. */
const hidden = lines('GET http://forbidden.test/smuggled HTTP/1.1', 'Host: forbidden.test', '', '');
const post = (...headers: readonly string[]): string =>
  lines('POST http://allowed.test/ HTTP/1.1', 'Host: allowed.test', ...headers, '', '');

/** Shapes of which two readers could make different requests: title -> bytes. */
const smuggling: Readonly<Record<string, string>> = {
  'length and chunks': `${post('Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\n${hidden}`,
  'two lengths': `${post('Content-Length: 6', 'Content-Length: 0')}abcdef${hidden}`,
  'a list of lengths': `${post('Content-Length: 6, 0')}abcdef${hidden}`,
  'a length with a sign': `${post('Content-Length: +6')}abcdef${hidden}`,
  'a length that is no number': `${post('Content-Length: 0x6')}abcdef${hidden}`,
  'a space before the colon': `${post('Transfer-Encoding : chunked')}0\r\n\r\n${hidden}`,
  'an unknown transfer encoding': `${post('Transfer-Encoding: xchunked')}0\r\n\r\n${hidden}`,
  'chunked that is not the last encoding': `${post('Transfer-Encoding: chunked, identity')}0\r\n\r\n${hidden}`,
  'a chunk size that is no number': `${post('Transfer-Encoding: chunked')}zz\r\n\r\n0\r\n\r\n${hidden}`,
  'a chunk size that overflows': `${post('Transfer-Encoding: chunked')}10000000000000000\r\n\r\n0\r\n\r\n${hidden}`,
  'a NUL in a header': post('X-Test: a\0b'),
  'a space in a header name': post('X Test: a'),
  'a version that does not exist': lines('GET http://allowed.test/ HTTP/1.9x', 'Host: allowed.test', '', ''),
  'a preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
};

/** Shapes that an engine may refuse, or read as one request for the allowed server. */
const ambiguous: Readonly<Record<string, string>> = {
  'a folded header': post('X-Test: a', ' Transfer-Encoding: chunked', 'Content-Length: 0', 'Connection: close'),
  'lines that end with LF alone': 'GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\nConnection: close\n\n',
  'a Host beside the URL': lines(
    'GET http://allowed.test/ HTTP/1.1',
    'Host: forbidden.test',
    'Connection: close',
    '',
    '',
  ),
  'two Hosts': lines(
    'GET http://allowed.test/ HTTP/1.1',
    'Host: allowed.test',
    'Host: forbidden.test',
    'Connection: close',
    '',
    '',
  ),
  'no Host': lines('GET http://allowed.test/ HTTP/1.1', 'Connection: close', '', ''),
  'headers of Envoy': lines(
    'GET http://allowed.test/ HTTP/1.1',
    'Host: allowed.test',
    'x-envoy-original-dst-host: 10.96.0.5:80',
    'x-forwarded-host: forbidden.test',
    'x-original-url: http://forbidden.test/',
    'Connection: close',
    '',
    '',
  ),
  'a wish for HTTP/2': lines(
    'GET http://allowed.test/ HTTP/1.1',
    'Host: allowed.test',
    'Connection: Upgrade, HTTP2-Settings, close',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
    '',
    '',
  ),
};

const oversized: Readonly<Record<string, string>> = {
  'a header of 100 KiB': post(`X-Test: ${'a'.repeat(100 * 1024)}`, 'Content-Length: 0'),
  '2,000 headers': post(...Array.from({ length: 2000 }, (_, index) => `X-${index}: a`), 'Content-Length: 0'),
  'a URL of 100 KiB': absolute('allowed.test', `/${'a'.repeat(100 * 1024)}`),
  'a host of 100 KiB': absolute(`${'a.'.repeat(50 * 1024)}wild.test`),
};

/** The same, and at the end it still serves. */
const scenario: typeof minedScenario = (name, title, run) =>
  minedScenario(name, title, async (field, bed) => {
    await run(field, bed);
    assert.equal((await sendRaw(ports.http, absolute('allowed.test')))?.status, 200);
  });

export const requestScenarios: readonly Scenario[] = [
  scenario('security-smuggling', 'refuses requests that two readers could read differently', async (field) => {
    for (const [title, bytes] of Object.entries(smuggling)) await field.refuses(title, send(bytes));
    assert.ok(field.plain.seen.every(({ url }) => !url.includes('smuggled')));
  }),
  scenario('security-ambiguous', 'refuses or cleans what has one safe reading', async (field) => {
    for (const [title, bytes] of Object.entries(ambiguous)) await field.refusesOrCleans(title, send(bytes));
    await field.refuses(
      'the URL of a forbidden host beside an allowed Host',
      send(lines('GET http://forbidden.test/ HTTP/1.1', 'Host: allowed.test', 'Connection: close', '', '')),
    );
    // The body of a request is a body, whatever it looks like.
    await field.refusesOrCleans(
      'a body that looks like a request',
      send(`${post(`Content-Length: ${hidden.length}`, 'Connection: close')}${hidden}`),
    );
  }),
  scenario('security-headers', 'passes on nothing that a client says to the proxy alone', async (field) => {
    const asked = lines(
      'GET http://allowed.test/ HTTP/1.1',
      'Host: allowed.test',
      'Proxy-Authorization: Basic c2VjcmV0',
      'Proxy-Connection: keep-alive',
      'Connection: close, X-Hop',
      'X-Hop: 1',
      '',
      '',
    );
    assert.equal((await send(asked)())?.status, 200);
    const headers = Object.keys(field.plain.seen.at(-1)?.headers ?? {});
    assert.deepEqual(
      headers.filter((header) => /^(proxy-|x-forwarded|x-envoy|x-hop|via)/.test(header)),
      [],
    );
  }),
  scenario('security-oversized', 'refuses what is too large', async (field) => {
    for (const [title, bytes] of Object.entries(oversized)) {
      const answer = await field.refuses(title, send(bytes));
      assert.match(`${answer?.status ?? 'closed'}`, /^(400|403|413|414|431|closed)$/, title);
    }
  }),
  scenario('security-slow', 'ends clients that do not say what they want', async (field, bed) => {
    const before = (await bed.engine.read()).refused.get('slow') ?? 0;
    const silent = [
      [ports.http, 'GET http://allowed.test/ HTTP/1.1\r\nHost: all'],
      [ports.http, 'POST http://allowed.test/ HTTP/1.1\r\n'],
      [ports.tls, '\x16\x03\x01\x02\x00'],
    ] as const;
    await Promise.all(
      silent.map(async ([port, bytes]) => {
        const socket = connect({ host: proxyAddress, port });
        socket.on('error', () => {});
        socket.resume();
        socket.write(bytes);
        await eventually(`the silent client of port ${port} is ended`, () => socket.closed, 30_000);
      }),
    );
    field.assertUntouched('a slow client');
    await eventually(
      'they are counted',
      async () => ((await bed.engine.read()).refused.get('slow') ?? 0) >= before + silent.length,
    );
  }),
  scenario('security-connect-ports', 'opens tunnels to the port of the rule and to no other', async (field) => {
    const odd = ['22', '25', '80', '8080', '0', '65536', '443x', '-1', '443.', '%34%34%33', '443@forbidden.test:443'];
    for (const port of odd) await field.refuses(`CONNECT to port ${port}`, tunnel(`allowed.test:${port}`));
    for (const authority of ['allowed.test', ':443', 'allowed.test:443/', 'http://allowed.test:443', '*:443', '/']) {
      await field.refuses(`CONNECT ${authority}`, tunnel(authority));
    }
    await field.refuses('CONNECT with the length of a body', tunnel('allowed.test:22', ['Content-Length: 5']));
  }),
  scenario('security-sni', 'forwards no server name that no rule allows, however it is written', async (field, bed) => {
    for (const name of ['forbidden.test', 'wild.test', 'evilwild.test', 'allowed.test.forbidden.test', 'localhost']) {
      await field.refuses(`server name ${name}`, () => askOverTls(ports.tls, name, bed.ca));
    }
    await field.refuses('no server name', () => askOverTls(ports.tls, '', bed.ca));
    await field.refuses('no TLS', () => sendRaw(ports.tls, absolute('allowed.test')));
  }),
];
