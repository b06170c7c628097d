import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { memoryStateFile, type StateFile, stateFile } from './state-file.ts';

describe('a state file', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-'));
  });
  after(() => rm(folder, { recursive: true }));

  const kinds: readonly (readonly [string, () => StateFile])[] = [
    ['on disk', () => stateFile(join(folder, 'state', 'table.json'))],
    ['in memory', memoryStateFile],
  ];
  for (const [kind, open] of kinds) {
    it(`${kind} keeps the last text until it is removed`, async () => {
      const file = open();
      assert.equal(await file.read(), undefined);
      await file.remove();
      await file.write('one');
      await file.write('two');
      assert.equal(await file.read(), 'two');
      await file.remove();
      assert.equal(await file.read(), undefined);
    });
  }

  it('leaves nothing else behind', async () => {
    await stateFile(join(folder, 'alone', 'a.json')).write('text');
    assert.deepEqual(await readdir(join(folder, 'alone')), ['a.json']);
  });

  it('that cannot be read is an error, not an empty one', async () => {
    const place = join(folder, 'place');
    await writeFile(place, '');
    await assert.rejects(stateFile(join(place, 'a.json')).read(), { code: 'ENOTDIR' });
  });
});
