/**
 * Is the simulation able to find a fault? Each test breaks the protocol on purpose, in a copy of its sources, and asks
 * for a history in which that is seen. A rule that can be taken away unnoticed is either not needed or not tested.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Ownership, OwnershipSettings } from './ownership.ts';
import { type Kind, run } from './testing/histories.ts';

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Mutation extends Change {
  readonly name: string;
  /** Another change that goes with it. */
  readonly and?: Change;
  /** The kind of history that has to notice, and the seed to begin with: a little before the first that did. */
  readonly kind: Kind;
  readonly firstSeed: number;
}

const mutations: readonly Mutation[] = [
  {
    name: 'an EIP goes to a node that has lost as much of it',
    file: 'handover.ts',
    from: 'if (doubt >= least) continue;',
    to: 'if (doubt > least) continue;',
    kind: 'uplinks',
    firstSeed: 1,
  },
  {
    name: 'an EIP goes at once to a node that hears the router first',
    file: 'handover.ts',
    from: ' || !hearing.isReachSettled(name, nowMs)',
    to: '',
    kind: 'uplinks',
    firstSeed: 1,
  },
  {
    name: 'an owner that misses the router first does not wait for the others',
    file: 'handover.ts',
    from: ' || nowMs < lostAtMs + timing.silenceMs',
    to: '',
    kind: 'uplinks',
    firstSeed: 1,
  },
  {
    name: 'an owner holds longer than voters wait',
    file: 'holdings.ts',
    from: 'sentAtMs + holdFor(promisedMs, this.#timing)',
    to: 'sentAtMs + holdFor(promisedMs, this.#timing) + 1.5 * this.#timing.heartbeatMs',
    kind: 'partition',
    firstSeed: 1,
  },
  {
    name: 'one vote less than a majority is enough',
    file: 'holdings.ts',
    from: 'Math.floor(votesOf(electorate) / 2) + 1;',
    to: 'Math.floor(votesOf(electorate) / 2);',
    kind: 'partition',
    firstSeed: 1,
  },
  {
    name: 'a voter gives its vote to a second node while it hears the first',
    file: 'voter.ts',
    from: 'vote.isReleased || this.isLost(eip, vote.node, nowMs)',
    to: 'vote.isReleased || true',
    kind: 'partition',
    firstSeed: 1,
  },
  {
    name: 'kernels are not asked',
    file: 'hearing.ts',
    from: 'if (heard !== undefined) heard.kernel = signAt(nowMs);',
    to: 'if (heard === undefined) this.presume(node, nowMs);',
    kind: 'agents',
    firstSeed: 1,
  },
  {
    name: 'a node that was held up takes silence for loss',
    file: 'hearing.ts',
    from: 'for (const sign of [heard.agent, heard.kernel]) {',
    to: 'for (const sign of [heard.kernel]) {',
    kind: 'agents',
    firstSeed: 600,
  },
  {
    name: 'an owner counts its time from the answer instead of from the question',
    file: 'holdings.ts',
    from: 'this.#sentAtMs[this.#sequence % REMEMBERED] = nowMs;',
    to: 'this.#sentAtMs[this.#sequence % REMEMBERED] = nowMs + this.#timing.heartbeatMs;',
    kind: 'partition',
    firstSeed: 1,
  },
  {
    name: 'a voter that gives a vote away does not tell',
    file: 'voter.ts',
    from: 'this.#lossesByNode.set(vote.node, this.lossesOf(vote.node) + 1)',
    to: 'this.#lossesByNode.set(vote.node, 0)',
    kind: 'storm',
    firstSeed: 1,
  },
  {
    name: 'the old owner lets go before the new one is ready',
    file: 'handover.ts',
    from: "holdings.put(eip, epoch, 'carried', nowMs, nowMs + timing.lingerMs);",
    to: '',
    kind: 'move',
    firstSeed: 1,
  },
  {
    name: 'an owner that was held up lets go before it has asked',
    file: 'ownership.ts',
    from: 'own.untilMs = nowMs + Math.max(leftMs, freshMs);',
    to: '',
    kind: 'together',
    firstSeed: 1,
  },
  {
    name: 'an owner whose time was over while it was held up lets go',
    file: 'ownership.ts',
    from: 'holdings.heldUntilMs(own, sinceMs)) < sinceMs',
    to: 'holdings.heldUntilMs(own, sinceMs)) <= sinceMs',
    kind: 'together',
    firstSeed: 7_000,
  },
  {
    name: 'an owner that is held up again and again has no time left',
    file: 'ownership.ts',
    from: 'own.untilMs = sinceMs + leftMs + againMs;',
    to: 'own.untilMs = nowMs;',
    kind: 'together',
    firstSeed: 1,
  },
  {
    // Either rule is enough alone; stalls.test.ts has each.
    name: 'an agent that was stopped for longer than the lease goes on where it was, and tells its kernel to hold on',
    file: 'standstill.ts',
    from: 'nowMs >= Math.min(heldUntilMs, steppedAtMs + timing.leaseMs) || ',
    to: '',
    and: { file: 'ownership.ts', from: ' && holdings.areConfirmed(nowMs)', to: '' },
    kind: 'stalls',
    firstSeed: 1,
  },
  {
    name: 'a machine that was suspended goes on where it was',
    file: 'standstill.ts',
    from: ' || suspendedMs >= timing.holdMs;',
    to: ';',
    kind: 'stalls',
    firstSeed: 1,
  },
  {
    name: 'an owner keeps its EIPs because one voter is reached, not all',
    file: 'holdings.ts',
    from: 'reachedAtMs = Math.min(reachedAtMs, atMs ?? -Infinity);',
    to: 'reachedAtMs = atMs ?? -Infinity;',
    kind: 'partition',
    firstSeed: 1,
  },
  {
    name: 'an owner keeps its EIPs though a voter that speaks has not voted for it',
    file: 'holdings.ts',
    from: 'if (isSpeaking && this.lacks(own, place) && !hasAbstained) return this.backedUntilMs(own);',
    to: '',
    kind: 'storm',
    firstSeed: 14_500,
  },
  {
    name: 'a voter that has just started votes at once',
    file: 'voter.ts',
    from: 'if (nowMs < this.#abstainsUntilMs) {',
    to: 'if (nowMs < 0) {',
    kind: 'storm',
    firstSeed: 2_000,
  },
  {
    name: 'voters forget the epochs of an EIP with it',
    file: 'voter.ts',
    from: 'this.#pastByEip.set(eip, { node, epoch });',
    to: '',
    kind: 'again',
    firstSeed: 1,
  },
  {
    name: 'the last owner of an EIP that was given up is the first to have it when it is given again',
    file: 'ownership.ts',
    from: 'if (!before.has(eip)) voter.begin(eip);',
    to: '',
    kind: 'again',
    firstSeed: 1,
  },
  {
    name: 'of a new EIP the next in line does not wait for the first, who reads the API later',
    file: 'candidacy.ts',
    from: 'vote.to === vote.node ? newTurnMs : silenceMs',
    to: 'vote.to === vote.node ? silenceMs : silenceMs',
    kind: 'again',
    firstSeed: 1,
  },
  {
    name: 'silences are not widened where processors are short',
    file: 'hearing.ts',
    from: 'return Math.max(silenceMs, Math.min(widestMs, steps * heartbeatMs));',
    to: 'return Math.min(silenceMs, Math.min(widestMs, steps * heartbeatMs) + silenceMs);',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'voters wait longer and do not promise it',
    file: 'replies.ts',
    from: 'silenceMs > timing.silenceMs && sequence >= PROMISES_FROM',
    to: 'silenceMs < timing.silenceMs && sequence >= PROMISES_FROM',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'a voter promises more than it waits',
    file: 'replies.ts',
    from: 'Math.floor(hearing.silenceOf(from))',
    to: '2 * Math.floor(hearing.silenceOf(from))',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'a voter that grants less from now on forgets what it has promised',
    file: 'hearing.ts',
    from: 'Math.max(heard.grantedUntilMs, nowMs + heard.silenceMs)',
    to: 'nowMs + heard.silenceMs',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'a voter that starts does not wait for what its last run has promised',
    file: 'ownership.ts',
    from: 'Math.max(promisedUntilMs, nowMs + timing.silenceMs)',
    to: 'Math.max(0, nowMs + timing.silenceMs)',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'an owner holds for longer than it was promised',
    file: 'timing.ts',
    from: '(promisedMs * holdMs) / silenceMs;',
    to: '(promisedMs * (silenceMs + holdMs)) / silenceMs;',
    kind: 'starved',
    firstSeed: 1,
  },
  {
    name: 'who is always late never takes anybody for lost',
    file: 'hearing.ts',
    from: 'Math.min(lateMs, widestMs + usualMs - silenceMs)',
    to: 'Math.max(lateMs, usualMs - widestMs)',
    kind: 'starved',
    firstSeed: 1,
  },
];

const TRIES = 6_000;
const folder = mkdtempSync(join(tmpdir(), 'sallyport-mutations-'));
after(() => rmSync(folder, { recursive: true, force: true }));
symlinkSync(join(import.meta.dirname, '../ip'), join(folder, 'ip'));

const broken = async (mutation: Mutation, index: number): Promise<new (settings: OwnershipSettings) => Ownership> => {
  const copy = join(folder, `copy-${index}`);
  const isShipped = (path: string): boolean => !path.endsWith('.test.ts') && basename(path) !== 'testing';
  cpSync(import.meta.dirname, copy, { recursive: true, filter: isShipped });
  for (const { file, from, to } of [mutation, ...(mutation.and ? [mutation.and] : [])]) {
    const text = readFileSync(join(copy, file), 'utf8');
    assert.equal(text.split(from).length, 2, `${file} has ${JSON.stringify(from)} exactly once`);
    writeFileSync(join(copy, file), text.replace(from, to));
  }
  return (await import(pathToFileURL(join(copy, 'ownership.ts')).href)).Ownership;
};

describe('the simulation finds it when', () => {
  for (const [index, mutation] of mutations.entries()) {
    it(mutation.name, async () => {
      const Broken = await broken(mutation, index);
      const { kind, firstSeed } = mutation;
      let found: string | undefined;
      for (let seed = firstSeed; seed < firstSeed + TRIES && found === undefined; seed += 1) {
        [found] = run(kind, { seed, Ownership: Broken });
      }
      assert.ok(found !== undefined, `none of ${TRIES} histories has noticed`);
    });
  }
});
