import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { keyOf } from '../engine/rule-key.ts';
import { sourcesOf } from '../engine/sources.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { clientNameOf, isClientName, parseClientName } from './client-name.ts';
import { GuardedResolver } from './resolver.ts';
import { Zone } from './testing/zone.ts';

describe('names by which nginx asks for a client', () => {
  const key = keyOf('shop/egress/db');

  it('are read as they are written', () => {
    for (const [text, client] of [
      ['10.244.1.1', '10.244.1.1'],
      ['fd00--1', 'fd00::1'],
      ['--1', '::1'],
    ]) {
      const name = clientNameOf(text ?? '', key);
      assert.ok(isClientName(name));
      assert.deepEqual(parseClientName(name), { client, key, host: undefined });
      assert.equal(parseClientName(clientNameOf(text ?? '', key, 'a.wild.test'))?.host, 'a.wild.test');
    }
  });

  it('are nothing when anything is missing or too much', () => {
    for (const name of [
      `nobody.${key}.from.sallyport`,
      '10.244.1.1.from.sallyport',
      `10.244.1.300.${key}.from.sallyport`,
    ]) {
      assert.equal(parseClientName(name), undefined, name);
    }
  });

  it('lead where the rule leads, for its clients only, and to hosts under its wildcard only', async () => {
    const zone = new Zone();
    const rule = tcpRule(5432, ['203.0.113.1', '2001:db8::1'], 5432, { from: ['shop'] });
    const wild = httpRule('*.wild.test', { from: ['shop'] });
    const resolver = new GuardedResolver({ outside: zone, clock: new ManualClock() });
    resolver.set(ruleSet(rule, wild));
    zone.entries.set('a.wild.test', { addresses: ['203.0.113.7', '10.0.0.1'] });
    const ask = (client: string, id: string, host?: string) =>
      resolver.reply(clientNameOf(client, keyOf(id), host), 'A');
    assert.equal((await ask('10.244.1.1', rule.id)).rcode, 'refused', 'nobody is known yet');
    resolver.admit(sourcesOf([{ namespace: 'shop', ips: [ip('10.244.1.1')], isProxy: false }]));
    assert.deepEqual(await ask('10.244.1.1', rule.id), { rcode: 'ok', ips: ['203.0.113.1'], ttlSeconds: 1 });
    assert.deepEqual((await ask('10.244.1.1', wild.id, 'a.wild.test')).ips, ['203.0.113.7']);
    assert.equal((await ask('10.244.1.1', wild.id, 'a.other.test')).rcode, 'refused');
    assert.equal((await ask('10.244.1.1', wild.id)).rcode, 'refused');
    assert.equal((await ask('10.244.1.2', rule.id)).rcode, 'refused');
    assert.equal(resolver.refused.get('client-not-allowed'), 2);
  });
});
