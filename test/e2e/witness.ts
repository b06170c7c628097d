/**
 * A failed test is read when its lab is gone, often on another machine: what the programs of the lab said is printed with it.
 * To be called in the suite before the hook that takes the lab down: hooks run in their order.
 */
import { after, afterEach, beforeEach } from 'node:test';
import { instanceOf } from '../../lab/host/instance.ts';
import { lastWords, lastWordsOf } from '../../lab/last-words.ts';
import type { LogLine } from './controller-process.ts';

/** When a test of the suite fails, prints what our programs in the lab complained about meanwhile. */
export const tellOfLab = (name: string): void =>
  tellOfFailures(`lab ${name}`, (sinceMs) => lastWords(instanceOf(name), sinceMs));

/** The same of processes that the test has started itself. */
export const tellOfProcesses = (started: () => readonly { readonly lines: readonly LogLine[] }[]): void =>
  tellOfFailures('processes', (sinceMs) =>
    started()
      .map(({ lines }, index) => lastWordsOf(`process ${index + 1}`, lines, sinceMs))
      .filter(Boolean)
      .join('\n'),
  );

const tellOfFailures = (who: string, wordsSince: (sinceMs: number) => string): void => {
  let sinceMs = 0;
  const tell = (when: string): void => {
    console.log(`--- ${who}, ${when}\n${wordsSince(sinceMs) || 'nobody said anything'}\n---`);
  };
  beforeEach(() => {
    sinceMs = Date.now();
  });
  afterEach((test) => {
    if (!test.passed) tell(`during the failed test "${test.name}"`);
  });
  // A suite whose preparation fails has no test that could. (Of one that passes it is not known yet here that it does.)
  after((suite) => {
    if (!suite.passed && sinceMs === 0) tell('since the beginning');
  });
};
