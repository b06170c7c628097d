import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ApiError } from '../kube/api-error.ts';
import type { RawRequest } from '../kube/client.ts';
import { Readers } from './readers.ts';

/** token -> audience, user; what the user may get */
const tokens: Readonly<Record<string, readonly [audience: string | undefined, user: string]>> = {
  'for-us': ['sallyport', 'operator'],
  'for-api': [undefined, 'prometheus'],
  nobody: ['sallyport', 'nobody'],
};
const may: Readonly<Record<string, readonly string[]>> = { operator: ['/report'], prometheus: ['/metrics'] };

let nowMs: number;
let asked: string[];
let isAway: boolean;
let readers: Readers;
beforeEach(() => {
  [nowMs, asked, isAway] = [0, [], false];
  const raw = async ({ path, body }: RawRequest): Promise<unknown> => {
    asked.push(path.split('/').at(-1) ?? '');
    if (isAway) throw ApiError.transport('Unreachable', 'away');
    const { spec } = body as {
      spec: { token: string; audiences?: string[]; user: string; nonResourceAttributes: { path: string } };
    };
    if (path.endsWith('/subjectaccessreviews')) {
      return { status: { allowed: may[spec.user]?.includes(spec.nonResourceAttributes.path) ?? false } };
    }
    const [audience, username] = tokens[spec.token] ?? [];
    const isKnown = username !== undefined && audience === spec.audiences?.[0];
    return { status: isKnown ? { authenticated: true, user: { username } } : { error: 'invalid' } };
  };
  readers = new Readers({ client: { raw }, clock: { monotonicMs: () => nowMs } });
});

test('a token that the API server knows and that may get the path reads it', async () => {
  assert.equal(await readers.mayRead('Bearer for-us', '/report'), 'allowed');
  assert.equal(await readers.mayRead('Bearer for-api', '/metrics'), 'allowed');
});

test('everybody else does not', async () => {
  assert.equal(await readers.mayRead(undefined, '/metrics'), 'unknown');
  assert.equal(await readers.mayRead('Basic YTpi', '/metrics'), 'unknown');
  assert.deepEqual(asked, [], 'who shows no token costs the API server nothing');
  assert.equal(await readers.mayRead('Bearer invented', '/metrics'), 'unknown');
  assert.equal(await readers.mayRead('Bearer nobody', '/metrics'), 'forbidden');
  assert.equal(await readers.mayRead('Bearer for-api', '/report'), 'forbidden');
});

test('the API server is asked once a minute, however often somebody reads', async () => {
  const read = () => readers.mayRead('Bearer for-us', '/report');
  await Promise.all([read(), read(), read()]);
  nowMs = 59_000;
  await read();
  assert.deepEqual(asked, ['tokenreviews', 'subjectaccessreviews']);
  nowMs = 61_000;
  await read();
  assert.equal(asked.length, 4);
});

test('who was allowed reads on while the API server is away, for ten minutes; nobody new does', async () => {
  await readers.mayRead('Bearer for-us', '/report');
  isAway = true;
  nowMs = 300_000;
  assert.equal(await readers.mayRead('Bearer for-us', '/report'), 'allowed');
  assert.equal(await readers.mayRead('Bearer for-api', '/metrics'), 'unavailable');
  nowMs = 601_000;
  assert.equal(await readers.mayRead('Bearer for-us', '/report'), 'unavailable');
});

test('a flood of invented tokens is four questions at once', async () => {
  const verdicts = await Promise.all(
    Array.from({ length: 100 }, (_, index) => readers.mayRead(`Bearer invented-${index}`, '/metrics')),
  );
  assert.equal(verdicts.filter((verdict) => verdict === 'unavailable').length, 96);
  assert.equal(asked.length, 8);
});
