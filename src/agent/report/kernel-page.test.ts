import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeNftables } from '../../dataplane/nft/testing/fake.ts';
import { kernelPage } from './kernel-page.ts';

const page = kernelPage({ node: 'a', nftables: createFakeNftables(), gatewayNumbers: () => new Map() });
const ask = async (query: string) => {
  const { status, body } = await page(new URLSearchParams(query));
  return { status, answer: JSON.parse(body) as Record<string, unknown> };
};

test('the page says that there is no table', async () => {
  assert.deepEqual(await ask('ip=10.0.0.1&slot=1'), { status: 200, answer: { node: 'a', hasTable: false } });
});

test('what cannot be read is refused with one sentence', async () => {
  const bad = { 'ip=10.0.0': /^ip: /, 'slot=0': /^slot: "0" is not a number from 1 to 16383$/, 'slot=x': /^slot: "x"/ };
  for (const [query, sentence] of Object.entries(bad)) {
    const { status, answer } = await ask(query);
    assert.equal(status, 400);
    assert.match(String(answer.error), sentence);
  }
});
