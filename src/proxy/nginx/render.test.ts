import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { type NginxSettings, render, renderEmpty } from './render.ts';

const settings: NginxSettings = {
  folder: '/run/sallyport/nginx',
  streamModule: '/usr/lib/nginx/modules/ngx_stream_module.so',
  workers: 2,
  hasIpv6: true,
  isRoot: false,
  drainSeconds: 3600,
};

const golden = (name: string): string => join(import.meta.dirname, 'golden', name);
const plain = { serializers: [(text: unknown) => String(text)] };

const rules = ruleSet(
  tcpRule(3306, ['203.0.113.1', '2001:db8::1'], 3306),
  tcpRule(3307, ['203.0.113.1', '203.0.113.2'], 3306, { algorithm: 'least_conn', idleSeconds: 60 }),
  tcpRule(3308, ['203.0.113.1', '203.0.113.2'], 3306, { algorithm: 'hash' }),
  tcpRule(6379, ['203.0.113.9'], 6379),
  tcpRule(8080, 'gamedb.proxy.example', 8080),
  httpRule('api.example.com'),
  httpRule('*.cdn.example.com', { destPort: 8088 }),
  httpRule('203.0.113.7'),
  httpRule('2001:db8::7', { destPort: 81 }),
  httpRule('wechatpay.api.example', { isTls: true }),
  httpRule('*.pay.example', { isTls: true, destPort: 8443 }),
);

describe('render', () => {
  it('renders rules of every kind', (t) => {
    t.assert.fileSnapshot(render(rules, settings).text, golden('every-kind.conf'), plain);
  });

  it('renders a configuration that listens nowhere for the start', (t) => {
    t.assert.fileSnapshot(renderEmpty(settings).text, golden('empty.conf'), plain);
  });

  it('gives the same text for the same rules, and another generation for any other', () => {
    assert.deepEqual(render(rules, settings), render(rules, settings));
    const changed = { ...rules, rules: rules.rules.slice(1) };
    assert.notEqual(render(rules, settings).generation, render(changed, settings).generation);
  });

  it('does not change when only the revision or the forbidden ranges do: the guard has them', () => {
    const guarded = { ...rules, revision: 'other', forbidden: ['203.0.113.0/24'] };
    assert.deepEqual(render(guarded, settings), render(rules, settings));
  });

  /** Characters that mean something to nginx or to JSON, and any other. */
  const odds = fc.oneof(fc.constantFrom(...'{}"\'\\$;#\n\t\0 '), fc.nat({ max: 0x10ffff }).map(String.fromCodePoint));

  it('has balanced braces and only ids that it made, whatever rules are called', () => {
    fc.assert(
      fc.property(fc.string({ unit: odds, minLength: 1, maxLength: 30 }), (odd) => {
        const withIds = (tcp: string, http: string) => [
          { ...tcpRule(3306, ['203.0.113.1', '203.0.113.2'], 3306), id: tcp },
          { ...httpRule('203.0.113.7'), id: http },
        ];
        // A plain id of an HTTP rule has a server of its own, so that ids with a newline are compared.
        const { text } = render({ ...ruleSet(...withIds(odd, `${odd}\n`)), name: odd }, settings);
        const { text: usual } = render({ ...ruleSet(...withIds('usual', '\n')), name: '' }, settings);
        assert.equal(text.split('{').length, usual.split('{').length);
        assert.equal(text.split('\n').length, usual.split('\n').length);
        assert.equal(text.split('"').length, usual.split('"').length);
      }),
    );
  });

  it('listens for IPv4 alone where there is no IPv6', () => {
    const { text } = render(rules, { ...settings, hasIpv6: false, isRoot: true });
    assert.ok(!text.includes('[::]:'));
    assert.match(text, /\n {4}listen 3306 backlog/);
    assert.match(text, /\nuser root;\n/);
  });
});
