import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HttpServed } from '../../core/proxy/served.ts';
import { httpRule } from '../testing/rules.ts';
import { authorities, MOST_OWN_HOSTS, ownHosts } from './render-hosts.ts';

/** Hosts of the rules that have a server of their own. */
const own = (rules: readonly HttpServed[]): string[] => ownHosts(rules).map(({ id }) => id);

describe('servers of single hosts', () => {
  const host = httpRule('api.test');

  it('are for names and addresses, and not for wildcards', () => {
    assert.deepEqual(own([host, httpRule('*.wild.test')]), [host.id]);
    assert.deepEqual(own([host, httpRule('203.0.113.7')]), [host.id, httpRule('203.0.113.7').id]);
  });

  it('are not for a host that another rule is for too, by name or by wildcard', () => {
    assert.deepEqual(own([host, httpRule('api.test', { destPort: 8080 })]), []);
    const under = httpRule('a.wild.test');
    assert.deepEqual(own([host, under, httpRule('*.wild.test', { destPort: 8080 })]), [host.id]);
  });

  it('are not for a rule whose id would need quotes', () => {
    assert.deepEqual(own([{ ...host, id: 'a"b' }]), []);
  });

  it('are as many as there is memory for', () => {
    const many = Array.from({ length: MOST_OWN_HOSTS + 5 }, (_, index) => httpRule(`host-${index}.test`));
    assert.equal(own(many).length, MOST_OWN_HOSTS);
  });

  it('know their host with its port, and without it when it is the usual one', () => {
    assert.deepEqual(authorities(host), ['api.test', 'api.test:80']);
    assert.deepEqual(authorities(httpRule('2001:db8::7', { destPort: 81 })), ['[2001:db8::7]:81']);
  });
});
