import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keyOf } from '../engine/rule-key.ts';
import { tcpRule } from '../testing/rules.ts';
import { RuleIds } from './rule-ids.ts';

const rule = (port: number) => tcpRule(port, ['203.0.113.1'], 80);
const [one, other] = [rule(1000), rule(1001)];
const keyOne = keyOf(one.id);

describe('ids of rules', () => {
  it('are known while a connection of a rule that is gone may go on, and then forgotten', () => {
    const ids = new RuleIds(1000);
    assert.deepEqual(ids.want([one, other], 0), []);
    assert.deepEqual(ids.want([other], 500), []);
    assert.deepEqual(ids.want([other], 1500), []);
    assert.equal(ids.idOf(keyOne), one.id);
    assert.deepEqual(ids.want([other], 1501), [one.id]);
    assert.equal(ids.idOf(keyOne), undefined);
    assert.equal(ids.idOf(keyOf(other.id)), other.id);
    assert.deepEqual(ids.want([other], 10_000), []);
  });

  it('begin anew when a rule comes back', () => {
    const ids = new RuleIds(1000);
    ids.want([one], 0);
    ids.want([], 1);
    ids.want([one], 900);
    assert.deepEqual(ids.want([], 5000), []);
    assert.deepEqual([ids.want([], 6000), ids.idOf(keyOne)], [[], one.id]);
    assert.deepEqual(ids.want([], 6001), [one.id]);
  });

  it('are as many as the rules of late, however many there were', () => {
    const ids = new RuleIds(1000);
    let forgotten = 0;
    for (let change = 0; change < 500; change += 1) forgotten += ids.want([rule(1000 + change)], change * 100).length;
    // The last one, and those of the last second.
    assert.equal(forgotten, 500 - 12);
  });
});
