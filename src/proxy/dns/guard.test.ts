import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseCidr, parseSet } from '../../core/ip/index.ts';
import { projectClusterInfo } from '../../core/project/index.ts';
import { forbiddenFor } from '../../core/proxy/forbidden.ts';
import { ip } from '../../core/testing/address.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { closedGuard, guardOf } from './guard.ts';

describe('guard', () => {
  const guard = guardOf(
    ruleSet(
      tcpRule(5432, 'db.example.com', 5432),
      tcpRule(5433, ['203.0.113.1'], 5432),
      httpRule('api.example.com'),
      httpRule('*.shop.example', { isTls: true }),
      httpRule('203.0.113.9'),
    ),
  );

  it('allows the names of rules and names under their suffixes', () => {
    const asked = ['db.example.com', 'api.example.com', 'a.shop.example', 'a.b.shop.example'];
    assert.deepEqual(
      asked.filter((name) => !guard.allows(name)),
      [],
    );
  });

  it('allows no other name', () => {
    const asked = [
      '',
      'example.com',
      'shop.example',
      'evilshop.example',
      'x.api.example.com',
      'shop.example.evil',
      '.shop.example',
      '203.0.113.9',
    ];
    assert.deepEqual(
      asked.filter((name) => guard.allows(name)),
      [],
    );
  });

  it('permits outside addresses and none that is forbidden', () => {
    for (const text of ['203.0.113.1', '8.8.8.8', '2001:db8::1', '2a00::1']) assert.ok(guard.permits(ip(text)), text);
    const bad = [
      '10.0.0.1',
      '127.0.0.1',
      '169.254.169.254',
      '0.0.0.0',
      '255.255.255.255',
      '::1',
      'fd00:ec2::254',
      'fe80::1',
    ];
    for (const text of bad) assert.ok(!guard.permits(ip(text)), text);
  });

  it('judges IPv6 addresses that carry an IPv4 address by what they carry', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }), (parts) => {
        const inner = ip(parts.join('.'));
        const hex = Buffer.from(parts).toString('hex');
        const groups = `${hex.slice(0, 4)}:${hex.slice(4)}`;
        assert.equal(guard.permits(ip(`64:ff9b::${groups}`)), guard.permits(inner));
        // These are not taken apart, so none of them is permitted.
        assert.ok(!guard.permits(ip(`2002:${groups}::5`)));
        assert.ok(!guard.permits(ip(`::${groups}`)));
        assert.ok(!guard.permits(ip(`64:ff9b:1::${groups}`)));
        assert.ok(!guard.permits(ip(`2001:0:${groups}::${groups}`)));
      }),
    );
  });

  it('permits a private range that the plan has opened', () => {
    const opened = parseSet(['10.0.0.0/8'], parseCidr);
    assert.ok(opened.ok);
    const open = guardOf({ rules: [], forbidden: forbiddenFor(projectClusterInfo(undefined), opened.value) });
    assert.ok(open.permits(ip('10.77.0.9')));
    assert.ok(open.permits(ip('64:ff9b::a4d:9')));
  });

  it('lets nothing pass before there are rules', () => {
    assert.ok(!closedGuard.allows('db.example.com'));
    assert.ok(!closedGuard.permits(ip('203.0.113.1')));
  });
});
