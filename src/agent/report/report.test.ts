import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { finding } from '../../core/cluster/finding.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import type { Revisions } from '../inputs/gather.ts';
import type { Outcome } from '../reconcile/node-reconciler.ts';
import { Reporter, reportOf } from './report.ts';

const revisions = (number: number): Revisions => ({ policies: `${number}`, clusterPolicies: `${number + 1}` });
const outcomeWith = (problems: Outcome['problems'], applied = revisions(1)): Outcome => ({
  desired: undefined,
  revisions: applied,
  isWhole: true,
  host: undefined,
  problems,
});
/** A node that agrees with nobody. */
const nobody = {
  electorate: undefined,
  opened: undefined,
  nodeGroups: [],
  isGateway: false,
  conflicts: [],
  detectionMs: undefined,
};
const problem = { finding: finding('NftRefused', 'The kernel refused.'), policy: undefined };

interface Write {
  readonly atMs: number;
  readonly status: Readonly<Record<string, unknown>>;
}

describe('Reporter', () => {
  let clock: ManualClock;
  let now: Revisions;
  /** What the server holds, and when it was written. */
  let writes: Write[];
  let failure: ApiError | undefined;
  beforeEach(() => {
    clock = new ManualClock();
    now = revisions(1);
    writes = [];
    failure = undefined;
  });
  const start = () => {
    const applyStatus = async (_resource: unknown, object: object) => {
      if (failure !== undefined) throw failure;
      writes.push({ atMs: clock.monotonicMs(), status: Object(object).status });
      return object;
    };
    const reporter = new Reporter({
      node: 'a',
      // The one method that the reporter uses.
      client: { applyStatus } as unknown as KubeClient,
      clock,
      log: createLog({ process: 'test', level: 'silent' }),
      heartbeatMs: () => 5_000,
      revisions: () => now,
    });
    const stop = new AbortController();
    const done = reporter.run(stop.signal);
    return {
      reporter,
      end: async () => {
        stop.abort();
        await done;
      },
    };
  };
  const report = (...problems: Outcome['problems']) => reportOf(outcomeWith(problems), nobody);

  it('writes nothing before there is something to say, then at once, then a sign of life every period', async () => {
    const { reporter, end } = start();
    await clock.advance(20_000);
    assert.equal(writes.length, 0);
    reporter.set(report(), now, true);
    await clock.advance(12_000);
    assert.deepEqual(
      writes.map(({ atMs }) => atMs),
      [20_000, 25_000, 30_000],
    );
    assert.equal(writes[0]?.status.lastHeartbeatTime, '2026-01-01T00:00:20.000Z');
    assert.equal(writes[2]?.status.lastHeartbeatTime, '2026-01-01T00:00:30.000Z');
    await end();
  });

  it('writes what is new at once, but at most once a second; the last word is always written', async () => {
    const { reporter, end } = start();
    reporter.set(report(), now, true);
    await clock.advance(3_000);
    reporter.set(report(problem), now, true);
    await clock.advance(100);
    reporter.set(report(problem, problem), now, true);
    await clock.advance(100);
    reporter.set(report(), now, true);
    await clock.advance(2_000);
    assert.deepEqual(
      writes.map(({ atMs, status }) => [atMs, Object(status.report).problems.length]),
      [
        [0, 0],
        [3_000, 1],
        [4_000, 0],
      ],
    );
    await end();
  });

  it('waits a moment for EIPs that are about to come, and no longer, so that they are not told a second later', async () => {
    const { reporter, end } = start();
    reporter.set(report(), now, true);
    await clock.advance(3_000);
    reporter.set(report(problem), revisions(2), false);
    await clock.advance(400);
    reporter.set(report(problem, problem), revisions(3), false);
    assert.equal(writes.length, 1);
    reporter.set(report(), revisions(4), true);
    await clock.advance(1_000);
    assert.deepEqual(
      writes.map(({ atMs, status }) => [atMs, Object(status.report).problems.length]),
      [
        [0, 0],
        [3_400, 0],
      ],
    );
    reporter.set(report(problem), revisions(5), false);
    await clock.advance(499);
    assert.equal(writes.length, 2);
    await clock.advance(1);
    assert.equal(writes.length, 3, 'they do not come');
    await clock.advance(1_000);
    reporter.set(report(problem, problem), revisions(6), false);
    await clock.advance(0);
    assert.equal(writes.length, 4, 'and are not waited for again');
    await end();
  });

  it('writes again for new versions of policies, and carries the versions of the moment of writing', async () => {
    const { reporter, end } = start();
    reporter.set(report(), now, true);
    await clock.advance(2_000);
    reporter.set(report(), now, true);
    await clock.advance(2_000);
    assert.equal(writes.length, 1, 'the same about the same');
    now = revisions(9);
    reporter.set(report(), revisions(7), true);
    await clock.advance(0);
    assert.deepEqual(writes[1]?.status.report, {
      eips: [],
      problems: [],
      appliedRevision: '9',
      appliedClusterRevision: '10',
    });
    await end();
  });

  it('writes the same again, soon, when the object is a new one', async () => {
    const { reporter, end } = start();
    reporter.set(report(), now, true);
    await clock.advance(3_000);
    reporter.repeat();
    await clock.advance(0);
    assert.equal(writes.length, 2);
    await end();
  });

  it('goes on when the server does not take it, and tries again after a second', async () => {
    const { reporter, end } = start();
    failure = ApiError.transport('Unreachable', 'nobody there');
    reporter.set(report(), now, true);
    await clock.advance(3_500);
    failure = undefined;
    await clock.advance(1_000);
    assert.deepEqual(
      writes.map(({ atMs }) => atMs),
      [4_000],
    );
    await end();
  });
});

describe('reportOf', () => {
  it('names problems with their policies, and no interface while there is no tunnel device', () => {
    const policy = { ...problem, policy: 'shop/a' as never };
    const host = {
      parent: { name: 'eth0', mtu: 1500, ipv4: undefined, ipv6: undefined },
      interfaces: [],
      defaults: [],
    };
    const { tunnel, report } = reportOf({ ...outcomeWith([problem, policy]), host }, nobody);
    assert.deepEqual(tunnel, {});
    assert.deepEqual(report?.problems, [
      { reason: 'NftRefused', message: problem.finding.sentence },
      { reason: 'NftRefused', message: problem.finding.sentence, policy: 'shop/a' },
    ]);
  });

  it('does not grow without end', () => {
    const many = Array.from({ length: 1_000 }, () => problem);
    const { report } = reportOf(outcomeWith(many), nobody);
    assert.deepEqual([report?.problems?.length, report?.unlistedProblems], [50, 950]);
  });

  it('says that policies beyond the fiftieth problem have problems too, and names those of the node first', () => {
    const ofPolicy = Array.from({ length: 50 }, (_, at) => ({ ...problem, policy: `shop/p${at}` as never }));
    assert.equal(reportOf(outcomeWith(ofPolicy), nobody).report?.unlistedProblems, undefined);
    const { report } = reportOf(outcomeWith([...ofPolicy, problem]), nobody);
    assert.equal(report?.problems?.[0]?.policy, undefined);
    assert.equal(report?.unlistedProblems, 1);
  });
});
