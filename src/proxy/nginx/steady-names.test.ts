import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { SteadyNames } from './steady-names.ts';

const ips = (...texts: readonly string[]): Ip[] => texts.map(ip);
const minute = 60_000;

describe('names that stand still', () => {
  const rules = ruleSet(
    httpRule('a.test'),
    httpRule('b.test', { destPort: 8080 }),
    httpRule('*.wild.test'),
    httpRule('tls.test', { isTls: true }),
    httpRule('203.0.113.9'),
    tcpRule(4100, 'db.test', 5432),
  );
  let clock: ManualClock;
  let world: Map<string, readonly Ip[]>;
  let names: SteadyNames;
  beforeEach(() => {
    clock = new ManualClock();
    world = new Map([
      ['a.test', ips('203.0.113.1', '203.0.113.2')],
      ['b.test', ips('203.0.113.3')],
    ]);
    names = new SteadyNames({ clock, lookUp: async (name) => world.get(name) ?? [] });
  });

  it('are those of plain hosts that lead somewhere', async () => {
    assert.deepEqual(await names.choose(rules), world);
    world.delete('b.test');
    assert.deepEqual([...(await names.choose(rules)).keys()], ['a.test']);
  });

  it('have not moved while their answers are the same', async () => {
    await names.choose(rules);
    assert.equal(await names.haveMoved(), false);
  });

  it('are not trusted after they moved, longer each time', async () => {
    await names.choose(rules);
    world.set('a.test', ips('203.0.113.1'));
    assert.equal(await names.haveMoved(), true);
    assert.deepEqual([...(await names.choose(rules)).keys()], ['b.test']);
    assert.equal(await names.haveMoved(), false, 'it is not watched any more');
    await clock.advance(10 * minute);
    assert.deepEqual([...(await names.choose(rules)).keys()], ['a.test', 'b.test']);
    world.delete('a.test');
    assert.equal(await names.haveMoved(), true, 'a name that leads nowhere has moved');
    world.set('a.test', ips('203.0.113.1'));
    await clock.advance(19 * minute);
    assert.deepEqual([...(await names.choose(rules)).keys()], ['b.test']);
    await clock.advance(minute);
    assert.deepEqual([...(await names.choose(rules)).keys()], ['a.test', 'b.test']);
  });

  it('are none when too many have moved within an hour, whichever they are', async () => {
    const many = Array.from({ length: 10 }, (_, index) => `n${index}.test`);
    for (const name of many) world.set(name, ips('203.0.113.1'));
    const all = ruleSet(...many.map((name) => httpRule(name)));
    let reloads = 0;
    for (const name of many) {
      await names.choose(all);
      world.set(name, ips('203.0.113.2'));
      if (await names.haveMoved()) reloads += 1;
      await clock.advance(minute);
    }
    assert.equal(reloads, 3);
    assert.equal((await names.choose(all)).size, 0);
    await clock.advance(60 * minute);
    assert.equal((await names.choose(all)).size, 10);
  });

  it('does not wait for a name that nobody answers for', async () => {
    const slow = new SteadyNames({
      clock,
      lookUp: (name) => (name === 'a.test' ? new Promise(() => {}) : Promise.resolve(world.get(name) ?? [])),
    });
    const choice = slow.choose(rules);
    await clock.advance(500);
    assert.deepEqual([...(await choice).keys()], ['b.test']);
  });
});
