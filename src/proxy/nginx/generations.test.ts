import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Generations } from './generations.ts';

const open = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-generations-'));
  return { folder, generations: new Generations(folder), [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
};

describe('Generations', () => {
  it('switches between whole configurations and back', async () => {
    await using bed = await open();
    for (const generation of ['one', 'two']) await bed.generations.write({ generation, text: `# ${generation}` });
    assert.equal(await bed.generations.choose('one'), undefined);
    assert.equal(await readFile(bed.generations.currentFile, 'utf8'), '# one');
    assert.equal(await bed.generations.choose('two'), 'one');
    assert.equal(await readFile(bed.generations.currentFile, 'utf8'), '# two');
    assert.equal(await bed.generations.choose('one'), 'two');
    assert.equal(await readFile(bed.generations.currentFile, 'utf8'), '# one');
  });

  it('keeps the named ones and removes the others', async () => {
    await using bed = await open();
    for (const generation of ['one', 'two', 'three']) await bed.generations.write({ generation, text: '' });
    await bed.generations.choose('two');
    await bed.generations.keep(['two']);
    assert.deepEqual((await readdir(bed.folder)).toSorted(), ['current', 'generation-two']);
  });

  it('starts from an empty folder, whatever was left there', async () => {
    await using bed = await open();
    await bed.generations.write({ generation: 'one', text: '' });
    await bed.generations.choose('one');
    await writeFile(join(bed.folder, 'state.sock'), '');
    await writeFile(join(bed.folder, 'current.new'), '');
    await bed.generations.clearSockets();
    assert.deepEqual((await readdir(bed.folder)).toSorted(), ['current', 'current.new', 'generation-one']);
    await bed.generations.clear();
    assert.deepEqual(await readdir(bed.folder), []);
  });
});
