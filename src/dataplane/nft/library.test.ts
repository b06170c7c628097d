import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRefusingPrograms } from '../testing/refusing-programs.ts';
import { type NftLibrary, withNftLibrary } from './library.ts';

const element = 'add element inet sallyport pod4 { 10.1.0.1 : 0x1 }\n';

/** A library and programs that keep what they were given. */
const machine = (isTaken: boolean) => {
  const byLibrary: string[] = [];
  const library: NftLibrary = {
    run: (script) => {
      byLibrary.push(script);
      return isTaken;
    },
    close: () => {},
  };
  const programs = createRefusingPrograms();
  return { byLibrary, byProgram: programs.left, programs: withNftLibrary(programs, library) };
};

describe('nft as a library', () => {
  it('changes elements without a program', async () => {
    const { byLibrary, byProgram, programs } = machine(true);
    const ended = await programs.run(['nft', '-f', '-'], { input: element });
    assert.deepEqual([ended.code, byLibrary, byProgram], [0, [element], []]);
  });

  it('leaves what it does not take to the program, which says why', async () => {
    const { byLibrary, byProgram, programs } = machine(false);
    const ended = await programs.run(['nft', '-f', '-'], { input: element });
    assert.deepEqual([ended.code, ended.stderr], [1, 'the program says why']);
    assert.deepEqual([byLibrary, byProgram], [[element], [`nft -f - < ${element}`]]);
  });

  it('is not asked for chains, for listings or for what would take much memory', async () => {
    const { byLibrary, byProgram, programs } = machine(true);
    const long = element.repeat(2_000);
    await programs.run(['nft', '-f', '-'], { input: `table inet sallyport {\n}\n${element}` });
    await programs.run(['nft', '-f', '-'], { input: long });
    await programs.run(['nft', '-j', 'list', 'table', 'inet', 'sallyport']);
    assert.deepEqual([byLibrary.length, byProgram.length], [0, 3]);
  });
});
