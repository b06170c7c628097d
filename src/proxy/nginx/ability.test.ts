import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { cannot, cannotTogether, note } from './ability.ts';

describe('what nginx cannot do', () => {
  it('can do lists with every algorithm, names in turn, plain hosts, and TLS hosts by name', () => {
    const rules = [
      tcpRule(1, ['203.0.113.1', '203.0.113.2'], 80, { algorithm: 'hash' }),
      tcpRule(2, ['203.0.113.1', '203.0.113.2'], 80, { algorithm: 'least_conn' }),
      tcpRule(3, 'db.example.com', 5432),
      httpRule('api.example.com'),
      httpRule('203.0.113.9'),
      httpRule('*.example.com', { isTls: true }),
    ];
    assert.deepEqual(
      rules.flatMap((rule) => cannot(rule) ?? []),
      [],
    );
  });

  it('names the engine that can for names with other algorithms and for TLS addresses', () => {
    for (const rule of [
      tcpRule(1, 'db.example.com', 5432, { algorithm: 'hash' }),
      tcpRule(1, 'db.example.com', 5432, { algorithm: 'least_conn' }),
      httpRule('203.0.113.9', { isTls: true }),
    ]) {
      assert.equal(cannot(rule)?.reason, 'EngineCannot');
      assert.match(cannot(rule)?.sentence ?? '', /engine envoy, which can$/);
    }
  });

  it('refuses names that could not stand in its configuration', () => {
    const bad = [tcpRule(1, 'a;b.example.com', 80), httpRule('$host.example.com'), httpRule('*.example.com"')];
    assert.deepEqual(
      bad.map((rule) => cannot(rule)?.reason),
      ['RuleRefused', 'RuleRefused', 'RuleRefused'],
    );
  });

  it('serves one port of a TLS host, 443 before others, and tells who has it', () => {
    const rules = ruleSet(
      httpRule('api.example.com', { isTls: true, destPort: 8443 }),
      httpRule('api.example.com', { isTls: true }),
      httpRule('api.example.com', { destPort: 8080 }),
      httpRule('other.example.com', { isTls: true, destPort: 8443 }),
    );
    const problems = cannotTogether(rules);
    assert.deepEqual([...problems.keys()], ['team/egress/tls-api-example-com-8443']);
    assert.match([...problems.values()][0]?.sentence ?? '', /tls-api-example-com-443 has it for port 443/);
  });

  it('tells users of a TLS host that CONNECT is not among the ways to it', () => {
    assert.match(
      note(httpRule('api.example.com', { isTls: true })) ?? '',
      /^nginx serves api\.example\.com by its server name.*envoy/,
    );
    assert.equal(note(httpRule('api.example.com')), undefined);
    assert.equal(note(tcpRule(1, 'db.example.com', 5432)), undefined);
  });
});
