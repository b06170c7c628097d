import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { most } from './budget.ts';
import { GuardedResolver } from './resolver.ts';
import { Zone } from './testing/zone.ts';

const open = (): { zone: Zone; clock: ManualClock; resolver: GuardedResolver; refusals: string[] } => {
  const zone = new Zone();
  const clock = new ManualClock();
  const refusals: string[] = [];
  const onRefused = (name: string, word: string): void => {
    refusals.push(`${name} ${word}`);
  };
  const resolver = new GuardedResolver({ outside: zone, clock, onRefused });
  resolver.set(
    ruleSet(tcpRule(5432, 'db.test', 5432), httpRule('*.shop.test'), httpRule('a.test'), httpRule('b.test')),
  );
  return { zone, clock, resolver, refusals };
};

describe('GuardedResolver', () => {
  it('answers an allowed name with its addresses of the family that was asked for', async () => {
    const { zone, resolver } = open();
    zone.entries.set('db.test', { addresses: ['203.0.113.1', '2001:db8::1', '203.0.113.2'], ttlSeconds: 20 });
    assert.deepEqual(await resolver.reply('db.test', 'A'), {
      rcode: 'ok',
      ips: ['203.0.113.1', '203.0.113.2'],
      ttlSeconds: 20,
    });
    assert.deepEqual(await resolver.reply('db.test', 'AAAA'), { rcode: 'ok', ips: ['2001:db8::1'], ttlSeconds: 20 });
    assert.deepEqual(resolver.addressesOf('db.test'), ['203.0.113.1', '203.0.113.2', '2001:db8::1']);
  });

  it('refuses other names without asking anybody, and counts them', async () => {
    const { zone, resolver, refusals } = open();
    zone.entries.set('evil.test', { addresses: ['203.0.113.1'] });
    assert.equal((await resolver.reply('evil.test', 'A')).rcode, 'refused');
    assert.deepEqual([...zone.asked], []);
    assert.deepEqual(refusals, ['evil.test name-not-allowed']);
    assert.equal(resolver.refused.get('name-not-allowed'), 1);
  });

  it('takes forbidden addresses away, whatever mixture the outside gives', async () => {
    const { zone, resolver } = open();
    zone.entries.set('a.test', { addresses: ['10.0.0.5', '203.0.113.1', '127.0.0.1'] });
    assert.deepEqual((await resolver.reply('a.test', 'A')).ips, ['203.0.113.1']);
    const found = await resolver.check('a.test');
    assert.deepEqual(found, { addresses: ['203.0.113.1'], forbidden: ['10.0.0.5', '127.0.0.1'] });
  });

  it('answers with no address when all are forbidden, counts it and says where the name leads', async () => {
    const { zone, resolver } = open();
    zone.entries.set('a.test', { addresses: ['169.254.169.254', '::ffff:10.0.0.1'] });
    assert.deepEqual((await resolver.reply('a.test', 'A')).ips, []);
    assert.deepEqual((await resolver.reply('a.test', 'AAAA')).ips, []);
    assert.equal(resolver.refused.get('address-forbidden'), 2);
    const { problem } = await resolver.check('a.test');
    assert.equal(problem?.reason, 'AddressForbidden');
    assert.match(problem?.sentence ?? '', /^a\.test resolves to 169\.254\.169\.254/);
  });

  it('judges what an alias leads to, though no rule names the alias', async () => {
    const { zone, resolver } = open();
    zone.entries.set('a.test', { alias: 'cdn.elsewhere', ttlSeconds: 30 });
    zone.entries.set('cdn.elsewhere', { addresses: ['203.0.113.7', '192.168.0.1'], ttlSeconds: 9 });
    assert.deepEqual(await resolver.reply('a.test', 'A'), { rcode: 'ok', ips: ['203.0.113.7'], ttlSeconds: 9 });
    zone.isRecursive = false;
    zone.entries.set('b.test', { alias: 'cdn.elsewhere' });
    assert.deepEqual((await resolver.reply('b.test', 'A')).ips, ['203.0.113.7']);
  });

  it('gives up on aliases in a ring', async () => {
    const { zone, resolver } = open();
    zone.isRecursive = false;
    zone.entries.set('a.test', { alias: 'c.test' });
    zone.entries.set('c.test', { alias: 'a.test' });
    assert.equal((await resolver.reply('a.test', 'A')).rcode, 'failed');
    assert.match((await resolver.check('a.test')).problem?.sentence ?? '', /more than 10 aliases/);
  });

  it('keeps an answer for its TTL, at least a second and at most a minute', async () => {
    const { zone, clock, resolver } = open();
    for (const [ttlSeconds, heldMs] of [
      [0, 1000],
      [5, 5000],
      [86_400, 60_000],
    ] as const) {
      zone.entries.set('db.test', { addresses: ['203.0.113.1'], ttlSeconds });
      await resolver.reply('db.test', 'A');
      const before = zone.asked.get('db.test') ?? 0;
      await clock.advance(heldMs - 1);
      await resolver.reply('db.test', 'A');
      assert.equal(zone.asked.get('db.test'), before, `${ttlSeconds}`);
      await clock.advance(1);
      await resolver.reply('db.test', 'A');
      assert.equal(zone.asked.get('db.test'), before + 1, `${ttlSeconds}`);
      await clock.advance(heldMs);
    }
  });

  it('asks once for all who ask at the same time', async () => {
    const { zone, resolver } = open();
    const gate = Promise.withResolvers<void>();
    zone.gate = gate.promise;
    zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    const replies = Array.from({ length: 50 }, () => resolver.reply('db.test', 'A'));
    gate.resolve();
    for (const reply of await Promise.all(replies)) assert.deepEqual(reply.ips, ['203.0.113.1']);
    assert.equal(zone.asked.get('db.test'), 1);
  });

  it('goes on with an old answer while nobody outside answers, and not for ever', async () => {
    const { zone, clock, resolver } = open();
    zone.entries.set('db.test', { addresses: ['203.0.113.1'], ttlSeconds: 5 });
    await resolver.reply('db.test', 'A');
    zone.isDown = true;
    await clock.advance(300_000);
    assert.deepEqual((await resolver.reply('db.test', 'A')).ips, ['203.0.113.1']);
    await clock.advance(400_000);
    assert.equal((await resolver.reply('db.test', 'A')).rcode, 'failed');
    assert.match((await resolver.check('db.test')).problem?.sentence ?? '', /cannot be resolved: no answer/);
    zone.isDown = false;
    await clock.advance(1000);
    assert.deepEqual((await resolver.reply('db.test', 'A')).ips, ['203.0.113.1']);
  });

  it('tells that a name does not exist or has no address, and finds out when it has', async () => {
    const { zone, clock, resolver } = open();
    assert.equal((await resolver.reply('db.test', 'A')).rcode, 'nxdomain');
    assert.deepEqual((await resolver.check('db.test')).problem, {
      reason: 'NameNotResolved',
      sentence: 'db.test has no address',
    });
    zone.entries.set('db.test', { addresses: ['2001:db8::1'] });
    await clock.advance(30_000);
    assert.deepEqual(await resolver.reply('db.test', 'A'), { rcode: 'ok', ips: [], ttlSeconds: 5 });
    assert.deepEqual((await resolver.check('db.test')).addresses, ['2001:db8::1']);
  });

  it('judges what it remembers by the rules of now', async () => {
    const { zone, resolver } = open();
    zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    await resolver.reply('db.test', 'A');
    const rules = ruleSet(tcpRule(5432, 'db.test', 5432));
    resolver.set({ ...rules, forbidden: [...rules.forbidden, '203.0.113.0/24'] });
    assert.deepEqual((await resolver.reply('db.test', 'A')).ips, []);
    assert.deepEqual(resolver.addressesOf('db.test'), []);
    resolver.set(ruleSet());
    assert.equal((await resolver.reply('db.test', 'A')).rcode, 'refused');
  });

  it('refuses a name that lost its rule while the question was under way', async () => {
    const { zone, resolver } = open();
    const gate = Promise.withResolvers<void>();
    zone.gate = gate.promise;
    zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    const reply = resolver.reply('db.test', 'A');
    resolver.set(ruleSet());
    gate.resolve();
    assert.equal((await reply).rcode, 'refused');
    assert.deepEqual(resolver.addressesOf('db.test'), []);
  });

  it('bounds the questions that are under way, so that invented names do not fill the memory', async () => {
    const { zone, resolver } = open();
    const gate = Promise.withResolvers<void>();
    zone.gate = gate.promise;
    const waiting = Array.from({ length: most.rule }, (_, index) => resolver.reply(`n${index}.shop.test`, 'A'));
    assert.equal((await resolver.reply('one-more.shop.test', 'A')).rcode, 'failed');
    assert.equal(resolver.refused.get('resolver-busy'), 1);
    const other = resolver.reply('a.test', 'A');
    assert.equal(resolver.refused.get('resolver-busy'), 1, 'a rule with few questions is served');
    gate.resolve();
    await other;
    await Promise.all(waiting);
  });

  it('tells the addresses of all names under a suffix', async () => {
    const { zone, resolver } = open();
    zone.entries.set('x.shop.test', { addresses: ['203.0.113.2'] });
    zone.entries.set('y.shop.test', { addresses: ['203.0.113.1', '10.0.0.1'] });
    await resolver.reply('x.shop.test', 'A');
    await resolver.reply('y.shop.test', 'A');
    assert.deepEqual(resolver.addressesUnder('.shop.test'), ['203.0.113.1', '203.0.113.2']);
  });
});
