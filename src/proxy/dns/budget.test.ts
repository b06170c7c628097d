import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, most } from './budget.ts';

const owner = (namespace: string, rule = 'a'): { rule: string; namespace: string } => ({
  namespace,
  rule: `${namespace}/egress/${rule}`,
});

/** Asks until it is refused, and tells how often. */
const fill = (budget: Budget, who: ReturnType<typeof owner>): number => {
  let count = 0;
  for (; budget.allows(who); count += 1) budget.begin(who);
  return count;
};

test('a rule has its share, and so has a namespace with many rules', () => {
  const budget = new Budget();
  assert.equal(fill(budget, owner('evil', 'r0')), most.rule);
  let all = most.rule;
  for (let index = 1; index < 20; index += 1) all += fill(budget, owner('evil', `r${index}`));
  assert.equal(all, most.namespace);
});

test('a namespace with few questions is never refused, however many others there are', () => {
  const budget = new Budget();
  for (let index = 0; index < 40; index += 1) {
    for (const rule of ['a', 'b', 'c', 'd', 'e']) fill(budget, owner(`evil-${index}`, rule));
  }
  assert.ok(budget.allows(owner('good')));
  assert.equal(fill(budget, owner('good')), most.always);
});

test('a question that has ended makes room', () => {
  const budget = new Budget();
  const end = budget.begin(owner('evil'));
  fill(budget, owner('evil'));
  end();
  assert.equal(fill(budget, owner('evil')), 1);
});
