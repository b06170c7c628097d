import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { sniRules } from './sni-rules.ts';

describe('sniRules', () => {
  it('has the TLS rules of names, exact and wildcard', () => {
    const name = httpRule('a.test', { isTls: true });
    const wildcard = httpRule('*.a.test', { isTls: true });
    const others = [httpRule('b.test'), httpRule('203.0.113.1', { isTls: true }), tcpRule(4000, 'c.test', 1)];
    assert.deepEqual(sniRules(ruleSet(name, wildcard, ...others)), [name, wildcard]);
  });

  it('prefers port 443 for a host with several rules, then the lowest port', () => {
    const ports = (...destPorts: number[]): number[] =>
      sniRules(ruleSet(...destPorts.map((destPort) => httpRule('a.test', { isTls: true, destPort })))).map(
        ({ destPort }) => destPort,
      );
    assert.deepEqual(ports(8443, 443, 80), [443]);
    assert.deepEqual(ports(9443, 8443), [8443]);
  });
});
