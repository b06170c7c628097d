import assert from 'node:assert/strict';
import { test } from 'node:test';
import { handOversIn, macsBetween, Reigns } from './reigns.ts';

/** Sightings as text: `a0 a100 b110` is a at 0 and 100, then b at 110. */
const spellsOf = (text: string) => {
  const reigns = new Reigns();
  for (const word of text.split(' ')) {
    reigns.add({ mac: word.slice(0, 1), ip: '10.77.0.100', kind: 'claim' }, Number(word.slice(1)));
  }
  return reigns.spells;
};

test('a clean hand-over has no length', () => {
  assert.deepEqual(handOversIn(spellsOf('a0 a100 b250 b5000')), [{ from: 'a', to: 'b', atMs: 250, mixedMs: 0 }]);
});

test('frames of both that mix make one hand-over, as long as they do', () => {
  assert.deepEqual(handOversIn(spellsOf('a0 b250 a260 b300 a700 b710 b9000')), [
    { from: 'a', to: 'b', atMs: 250, mixedMs: 460 },
  ]);
});

test('two owners are one long hand-over, flapping is many', () => {
  const two = Array.from({ length: 20 }, (_, index) => `${index % 2 === 0 ? 'a' : 'b'}${index * 200}`).join(' ');
  assert.deepEqual(handOversIn(spellsOf(two)), [{ from: 'a', to: 'b', atMs: 200, mixedMs: 3_600 }]);
  assert.equal(handOversIn(spellsOf('a0 b2000 a4000 b6000')).length, 3);
});

test('where faults come one upon the other, two owners are told from owners in turn by how closely they alternate', () => {
  const inTurn = 'a0 b300 a700 b1200 b9000';
  assert.equal(handOversIn(spellsOf(inTurn))[0]?.mixedMs, 900);
  assert.deepEqual(new Set(handOversIn(spellsOf(inTurn), 0, 200).map(({ mixedMs }) => mixedMs)), new Set([0]));
  const atOnce = Array.from({ length: 50 }, (_, index) => `${index % 2 === 0 ? 'a' : 'b'}${index * 30}`).join(' ');
  assert.equal(handOversIn(spellsOf(atOnce), 0, 200)[0]?.mixedMs, 1_440);
});

test('one that comes back at once is told as a hand-over too', () => {
  assert.deepEqual(handOversIn(spellsOf('a0 b250 a260 a9000')), [{ from: 'a', to: 'a', atMs: 250, mixedMs: 10 }]);
});

test('what was before does not count', () => {
  assert.deepEqual(handOversIn(spellsOf('a0 b2000 a4000'), 3_000), [{ from: 'b', to: 'a', atMs: 4_000, mixedMs: 0 }]);
  assert.deepEqual(macsBetween(spellsOf('a0 b2000 b3000 c4000'), 2_500), ['b', 'c']);
  assert.deepEqual(macsBetween(spellsOf('a0 b2000 b3000 c4000'), 0, 1_000), ['a']);
});
