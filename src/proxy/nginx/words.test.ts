import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseIp } from '../../core/ip/index.ts';
import { keyOf } from '../engine/rule-key.ts';
import { hostOf, isPlainName, path, quoted } from './words.ts';

describe('words of the configuration', () => {
  it('takes host names', () => {
    for (const name of [
      'a.b',
      'db.example.com',
      'x_y.example-1.com',
      `${'a'.repeat(63)}.com`,
      'xn--bcher-kva.example',
    ]) {
      assert.ok(isPlainName(name), name);
    }
  });

  it('takes nothing that nginx could read as something else', () => {
    const bad = [
      '',
      'a',
      'a..b',
      '.a.b',
      'a.b.',
      'A.b',
      'a b.c',
      '$host.com',
      'a;b.c',
      'a{b.c',
      'a"b.c',
      'a\\b.c',
      'a:1.b',
      'a/b.c',
      'a#b.c',
      '*.a.b',
      '~a.b',
      '1.2.3.4',
      'a.4',
      `${'a'.repeat(64)}.com`,
      `${'a.'.repeat(127)}com`,
      'a.b\n',
    ];
    assert.deepEqual(bad.filter(isPlainName), []);
  });

  it('keeps a name plain whatever characters it is tried with', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (text) => {
        if (isPlainName(text)) assert.match(text, /^[a-z0-9._-]+$/);
      }),
    );
  });

  it('makes one identifier per rule, of letters and digits', () => {
    assert.match(keyOf('team/egress/"; return 200;'), /^r[0-9a-f]{16}$/);
    assert.equal(keyOf('a/b/c'), keyOf('a/b/c'));
    assert.notEqual(keyOf('a/b/c'), keyOf('a/b/d'));
  });

  it('leaves out of a quoted text what nginx would read', () => {
    assert.equal(quoted('a $host $ {x} "b" \\ c\nd;'), '"a host  x b  cd;"');
  });

  it('quotes any text so that it ends where it should and holds no variable', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.nat({ max: 0x10ffff }).map(String.fromCodePoint) }), (text) => {
        assert.match(quoted(text), /^"[^"\\${}]*"$/);
      }),
    );
  });

  it('writes addresses as URLs do, and refuses paths that would need quotes', () => {
    const six = parseIp('2001:db8::1');
    assert.equal(six.ok && hostOf(six.value), '[2001:db8::1]');
    assert.equal(path('/run/sallyport/nginx'), '/run/sallyport/nginx');
    assert.throws(() => path('/run/a b;'), /cannot use the path/);
  });
});
