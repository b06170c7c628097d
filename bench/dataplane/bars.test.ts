import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Bar, judge, median, type Samples } from './bars.ts';

const samples = (ours: readonly number[], base: readonly number[], column = 'established'): Samples =>
  new Map([
    ['ours', new Map([[column, ours]])],
    ['base', new Map([[column, base]])],
  ]);
const bar = (limit: number, is: Bar['is'] = 'most', column = 'established'): Bar => ({
  title: 'a bar',
  ways: ['ours'],
  column,
  baseline: { way: 'base', column },
  limit,
  is,
});
const verdictOf = (...given: Parameters<typeof judge>) => judge(...given).map(({ verdict }) => verdict);

describe('judge', () => {
  it('compares medians and the best', () => {
    const [judged] = judge(samples([12, 30, 14], [10, 10, 11]), bar(1.5));
    assert.deepEqual(judged, { way: 'ours', ofMedians: 1.4, ofBest: 1.2, verdict: 'met' });
  });

  it('says met, missed or noisy by how many of the two hold', () => {
    assert.deepEqual(verdictOf(samples([15, 15, 15], [10, 10, 10]), bar(1.5)), ['met']);
    assert.deepEqual(verdictOf(samples([16, 16, 16], [10, 10, 10]), bar(1.5)), ['missed']);
    assert.deepEqual(verdictOf(samples([10, 16, 16], [10, 10, 10]), bar(1.5)), ['noisy']);
  });

  it('takes the highest throughput as the best one', () => {
    const [judged] = judge(samples([8, 9, 9], [10, 10, 12], 'iperf3'), bar(0.9, 'least', 'iperf3'));
    assert.deepEqual(judged, { way: 'ours', ofMedians: 0.9, ofBest: 0.75, verdict: 'noisy' });
  });

  it('does not call a bar met that nothing was measured for', () => {
    assert.deepEqual(verdictOf(samples([], [10]), bar(1.5)), ['missed']);
    assert.deepEqual(verdictOf(samples([1], []), bar(0.1, 'least')), ['missed']);
    assert.deepEqual(verdictOf(new Map(), bar(1.5)), ['missed']);
  });
});

describe('median', () => {
  it('is the middle, or between the two in the middle', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.ok(Number.isNaN(median([])));
  });
});
