import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { areAmong, portsOf, without } from './part.ts';

const database = tcpRule(3306, ['203.0.113.1'], 3306);
const host = httpRule('a.test');

describe('parts of rule sets', () => {
  it('leave out rules with a problem, and with them their ports', () => {
    const rules = ruleSet(database, host);
    assert.deepEqual(portsOf(rules), [61080, 61443, 3306]);
    const part = without(rules, new Map([[database.id, 'taken']]));
    assert.deepEqual([part.rules, part.name, portsOf(part)], [[host], rules.name, [61080, 61443]]);
  });

  it('know when a rule is gone or changed, and when others only came', () => {
    assert.ok(areAmong([], [host]));
    assert.ok(areAmong([host, database], [database, httpRule('b.test'), host]));
    assert.ok(!areAmong([host, database], [host]));
    assert.ok(!areAmong([database], [{ ...database, idleSeconds: 60 }]));
  });
});
