import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BCSEgressStatus } from '../../api/bcs-egress.ts';
import { finding } from '../cluster/finding.ts';
import { egressObject, planOf, reportOf } from '../testing/proxies.ts';
import { isGoneFrom, type Replica } from './report.ts';
import type { ObservedProxy } from './rule-state.ts';
import { statusOf } from './status.ts';

const now = new Date('2026-05-20T20:15:35.123Z');
const tcp = [{ name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' }];
const http = [{ name: 'web', host: 'web.example.com', tls: true }];
const plan = planOf({ egresses: [egressObject('a/a', { generation: 4, tcp, http })] });
const report = reportOf(plan);

const replica = (rest: Partial<Replica> = {}): Replica => ({ pod: 'p1', isSilent: false, report, ...rest });
const known = (rest: Partial<ObservedProxy> = {}): ObservedProxy => ({
  replicas: [replica()],
  hadContact: true,
  isBeingMade: false,
  trouble: undefined,
  published: new Map([['a/a/db', finding('NamesPublished', 'It answers.')]]),
  ...rest,
});
const fold = (rest: Partial<ObservedProxy> = {}, before?: BCSEgressStatus, at = now, of = plan) => {
  const egress = of.egresses.get('a/a');
  assert.ok(egress);
  return statusOf(egress, known(rest), before, at);
};

test('Synced when every ready replica has the rules live and the name answers', () => {
  const { fields, findings } = fold({ replicas: [replica(), replica({ pod: 'p2' })] });
  assert.equal(fields.state, 'Synced');
  assert.equal(fields.reason, undefined);
  assert.deepEqual([fields.httpActives, fields.tcpActives], [2, 2]);
  assert.equal(fields.syncedAt, '2026-05-20 20:15:35');
  assert.equal(fields.observedGeneration, 4);
  assert.deepEqual(
    Object.values(findings).map(({ reason }) => reason),
    ['Valid', 'RulesLive', 'NamesPublished', 'ClientsLimited'],
  );
});

test('syncedAt changes only when the rules did', () => {
  const first = fold().fields;
  const later = new Date('2026-05-21T00:00:00Z');
  const lost = fold({ replicas: [] }, first, later).fields;
  assert.equal(lost.state, 'Unknown');
  assert.equal(lost.syncedAt, first.syncedAt);
  assert.equal(fold({}, lost, later).fields.syncedAt, first.syncedAt);
  const other = planOf({
    egresses: [egressObject('a/a', { generation: 4, tcp: [{ ...tcp[0], destport: 3307 }], http })],
  });
  assert.equal(fold({}, lost, later, other).fields.syncedAt, '2026-05-21 00:00:00');
});

test('Pending while a replica is behind, while there was none yet, and while the name does not answer', () => {
  const behind = { ...report, egresses: { 'a/a': 3 } };
  const pending = fold({ replicas: [replica(), replica({ pod: 'p2', report: behind })] });
  assert.equal(pending.fields.state, 'Pending');
  assert.match(pending.fields.reason ?? '', /p2/);
  assert.equal(fold({ replicas: [], hadContact: false }).fields.state, 'Pending');
  const unanswered = fold({ published: new Map([['a/a/db', finding('NameNotAnswering', 'No answer yet.')]]) });
  assert.equal(unanswered.fields.state, 'Pending');
  assert.equal(unanswered.findings.Published?.reason, 'NameNotAnswering');
  assert.equal(unanswered.findings.Programmed.reason, 'RulesLive');
});

test('a condition says how many of many rules are done', () => {
  const rules = report.rules.filter(({ id }) => id !== 'a/a/web');
  const late = fold({ replicas: [replica({ report: { ...report, rules } })] });
  assert.match(
    late.findings.Programmed.sentence,
    /^1 of 2 rules are live on every ready replica of .*\. Rule web is not/,
  );
  const published = new Map([
    ['a/a/db', finding('NamesPublished', 'It answers.')],
    ['a/a/web', finding('NameNotAnswering', 'No answer yet.')],
  ]);
  assert.match(fold({ published }).findings.Published?.sentence ?? '', /^1 of 2 rules are published\. No answer yet\./);
});

test('Unknown when nobody answers, or one does not', () => {
  const lost = fold({ replicas: [replica(), replica({ pod: 'p2', isSilent: true })] });
  assert.equal(lost.fields.state, 'Unknown');
  assert.match(lost.fields.reason ?? '', /No report comes from p2/);
  assert.equal(lost.findings.Programmed.reason, 'ProxyOutOfContact');
});

test('Error of one rule leaves the others as they are', () => {
  const rules = report.rules.map((rule) =>
    rule.id === 'a/a/db'
      ? { ...rule, state: 'error' as const, reason: 'ListenPortTaken' as const, sentence: 'Port 3306 is held.' }
      : rule,
  );
  const { fields, findings } = fold({ replicas: [replica({ report: { ...report, rules } })] });
  assert.equal(fields.state, 'Error');
  assert.equal(fields.reason, 'Port 3306 is held.');
  assert.deepEqual(
    fields.rules?.map(({ name, state }) => [name, state]),
    [
      ['db', 'Error'],
      ['web', 'Synced'],
    ],
  );
  assert.equal(findings.Programmed.reason, 'ListenPortTaken');
});

test('a proxy that is about to be made is no error', () => {
  const missing = planOf({ proxies: [], egresses: [egressObject('a/a', { tcp })] });
  assert.equal(fold({ isBeingMade: true, published: new Map() }, undefined, now, missing).fields.state, 'Pending');
  const refused = fold({ published: new Map() }, undefined, now, missing);
  assert.equal(refused.fields.state, 'Error');
  assert.equal(refused.findings.Accepted.reason, 'ProxyNotFound');
});

test('rules are gone when no replica that answers has any of them', () => {
  assert.ok(!isGoneFrom([replica()], 'a/a'));
  assert.ok(isGoneFrom([replica({ report: { ...report, egresses: {} } }), replica({ isSilent: true })], 'a/a'));
  assert.ok(isGoneFrom([], 'a/a'));
});
