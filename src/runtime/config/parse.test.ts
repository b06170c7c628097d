import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { configError, parseConfig } from './parse.ts';

const schema = z.strictObject({
  logLevel: z.enum(['debug', 'info']).default('info'),
  vxlan: z
    .strictObject({ port: z.int().min(1).max(65_535).default(7789), name: z.string().max(15).optional() })
    .prefault({}),
  ranges: z
    .array(
      z.strictObject({ cidr: z.string().refine((text) => text.includes('/'), 'must be a CIDR such as 10.0.0.0/8') }),
    )
    .default([]),
  enableIPv6: z.boolean().default(true),
});

/** The problems of a bad text as `line: sentence`. */
function faults(text: string): readonly string[] {
  const parsed = parseConfig(text, schema);
  assert.ok(!parsed.ok, 'accepted');
  return parsed.problems.map(({ line, sentence }) => `${line}: ${sentence}`);
}

test('a good file gives values, an empty one the defaults', () => {
  const defaults = { logLevel: 'info', vxlan: { port: 7789 }, ranges: [], enableIPv6: true };
  for (const text of ['', '# only a comment\n', '{}', '---\n']) {
    assert.deepEqual(parseConfig(text, schema), { ok: true, value: defaults }, JSON.stringify(text));
  }
  assert.deepEqual(parseConfig('vxlan:\n  port: 8472\n', schema), {
    ok: true,
    value: { ...defaults, vxlan: { port: 8472 } },
  });
});

test('a bad value is named with its line, key, value and what is allowed', () => {
  const cases: readonly [string, string][] = [
    ['vxlan:\n  port: 70000\n', '2: vxlan.port is 70000: allowed is a whole number from 1 to 65535'],
    ['vxlan:\n  port: "4789"\n', '2: vxlan.port is "4789": allowed is a whole number from 1 to 65535'],
    ['\n\nlogLevel: loud\n', '3: logLevel is "loud": allowed is one of "debug", "info"'],
    ['enableIPv6: yes\n', '1: enableIPv6 is "yes": allowed is true or false'],
    [
      'ranges:\n- cidr: 10.0.0.0/8\n- cidr: 10.0.0.1\n',
      '3: ranges[1].cidr is "10.0.0.1": must be a CIDR such as 10.0.0.0/8',
    ],
    ['ranges:\n- {}\n', '2: ranges[0].cidr is missing: allowed is a text'],
    ['vxlan: 3\n', '1: vxlan is 3: allowed is a mapping with the keys port, name'],
  ];
  for (const [text, expected] of cases) assert.deepEqual(faults(text), [expected]);
});

test('an unknown key is named with the keys that are known there', () => {
  assert.deepEqual(faults('vxlan:\n  port: 1\n  prot: 2\nlogLevl: info\n'), [
    '3: vxlan.prot is not a known key: allowed here are port, name',
    '4: logLevl is not a known key: allowed here are logLevel, vxlan, ranges, enableIPv6',
  ]);
});

test('problems come in the order of their lines', () => {
  assert.deepEqual(
    faults('enableIPv6: 1\nlogLevel: 2\nvxlan:\n  port: x\n').map((fault) => fault.slice(0, 2)),
    ['1:', '2:', '4:'],
  );
});

test('a key on a line of its own is found on that line, not on the line of its value', () => {
  assert.match(faults('vxlan:\n  port:\n\n    70000\n')[0] ?? '', /^2: /);
});

test('text that is not YAML is named with its line', () => {
  assert.match(faults('vxlan:\n  port: 1\n port: 2\n')[0] ?? '', /^3: not YAML: /);
  assert.match(faults('logLevel: info\nlogLevel: debug\n')[0] ?? '', /^2: not YAML: Map keys must be unique/);
  assert.match(faults('a: *nowhere\n')[0] ?? '', /^1: not YAML: /);
});

test('a second document is refused', () => {
  assert.deepEqual(faults('logLevel: info\n---\nlogLevel: debug\n'), ['2: only one YAML document is allowed']);
});

test('a document that unfolds without end is refused, not swallowed', () => {
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
  for (const [name, of] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf'].map((pair) => pair.split(''))) {
    bomb.push(`${name}: &${name} [${Array(9).fill(`*${of}`).join(',')}]`);
  }
  assert.match(faults(bomb.join('\n'))[0] ?? '', /not YAML: /);
});

test('the error is one sentence about the first problem, and its data hold all', () => {
  const parsed = parseConfig('logLevel: loud\nenableIPv6: 3\n', schema);
  assert.ok(!parsed.ok);
  const error = configError('config.yaml', parsed.problems);
  assert.equal(error.code, 'CONFIG_INVALID');
  assert.equal(error.message, 'config.yaml:1: logLevel is "loud": allowed is one of "debug", "info" (and 1 more)');
  assert.deepEqual(error.data, { path: 'config.yaml', problems: parsed.problems });
});
