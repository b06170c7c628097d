import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyView } from '../../core/cluster/view.ts';
import { projectPolicy } from '../../core/project/index.ts';
import { policyObject } from '../../core/testing/objects.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { type Attempt, Isolation } from './isolate.ts';

const policy = (name: string, destination = '192.0.2.0/24'): PolicyView =>
  projectPolicy(policyObject(`shop/${name}`, { destSubnet: [destination] }));

/** A kernel that takes a list unless it holds one of the bad policies, and remembers what it took last. */
const kernelThatRefuses = (bad: ReadonlySet<PolicyView>) => {
  const kernel = { held: [] as readonly PolicyView[], attempts: 0 };
  const attempt: Attempt = async (policies) => {
    kernel.attempts += 1;
    const culprit = policies.find((candidate) => bad.has(candidate));
    if (culprit !== undefined) return `cannot have ${culprit.name}`;
    kernel.held = policies;
    return undefined;
  };
  return { kernel, attempt };
};

const open = (clock = new ManualClock(), onChange: () => void = () => {}) => new Isolation({ clock, onChange });

describe('Isolation', () => {
  it('finds exactly the policies that the kernel refuses, whichever they are, and leaves the others in force', async () => {
    const policies = Array.from({ length: 40 }, (_, index) => policy(`p${index}`));
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(39), { maxLength: 6 }), async (numbers) => {
        const bad = new Set(policies.filter((_, index) => numbers.includes(index)));
        const { kernel, attempt } = kernelThatRefuses(bad);
        const isolation = open();
        assert.equal(await isolation.isolate(policies, attempt), true);
        const reported = isolation.problems().map((problem) => problem.policy);
        assert.deepEqual(new Set(reported), new Set([...bad].map(({ key }) => key)));
        assert.deepEqual(kernel.held, isolation.cover(policies), 'the kernel holds what is said to be in force');
        for (const [index, held] of kernel.held.entries()) {
          if (held === policies[index]) continue;
          assert.ok(bad.has(policies[index] as PolicyView));
          assert.equal(held.spec?.destinations, undefined, 'a culprit is cut off from everything outside');
          assert.equal(held.spec?.onUnavailable, 'Drop');
          assert.equal(held.recorded.slot, undefined);
        }
        assert.ok(kernel.attempts <= 2 + bad.size * 12, `${kernel.attempts} attempts for ${bad.size}`);
      }),
      { numRuns: 50 },
    );
  });

  it('keeps a culprit as the kernel last took it', async () => {
    const [before, after, other] = [policy('a'), policy('a', '198.51.100.0/24'), policy('b')];
    const { kernel, attempt } = kernelThatRefuses(new Set([after]));
    const isolation = open();
    isolation.taken([before, other]);
    await isolation.isolate([after, other], attempt);
    assert.deepEqual(kernel.held, [before, other]);
    assert.match(isolation.problems()[0]?.finding.sentence ?? '', /policy shop\/a: cannot have a\./);
  });

  it('says so when no policy is the cause, and changes nothing', async () => {
    const isolation = open();
    const policies = [policy('a')];
    assert.equal(await isolation.isolate(policies, async () => 'no memory'), false);
    assert.equal(isolation.cover(policies), policies);
    assert.deepEqual(isolation.problems(), []);
  });

  it('gives a changed policy a new try at once, and an unchanged one after a minute', async () => {
    const clock = new ManualClock();
    let changes = 0;
    const isolation = open(clock, () => {
      changes += 1;
    });
    const [bad, good] = [policy('a'), policy('b')];
    await isolation.isolate([bad, good], kernelThatRefuses(new Set([bad])).attempt);
    const list = [bad, good];
    assert.notEqual(isolation.cover(list)[0], bad);
    assert.equal(isolation.cover(list), isolation.cover(list), 'the same list until something changes');
    const changed = policy('a', '203.0.113.0/24');
    assert.equal(isolation.cover([changed, good])[0], changed);
    await clock.advance(60_000);
    assert.equal(changes, 1);
    assert.equal(isolation.cover(list), list);
  });
});
