import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { offencesOf } from '../boundaries.ts';
import { importsOf } from './imports.ts';
import { importOffences } from './layers.ts';
import { machineTextOffences } from './machine-text.ts';
import { roomOffences } from './rooms.ts';
import { readSourceFiles, type SourceFile } from './source-files.ts';
import { folderPageOffences, lengthOffences, purityOffences, typeNameOffences, workNoteOffences } from './tree.ts';

const file = (path: string, ...lines: string[]): SourceFile => ({ path, text: lines.join('\n') });
const importing = (path: string, specifier: string, keyword = 'import'): SourceFile =>
  file(path, `${keyword} { x } from '${specifier}';`);
/** Joins the parts, so that this file does not itself hold the text that the rules look for. */
const glued = (...parts: string[]): string => parts.join('');

describe('importsOf', () => {
  it('finds every form with its line', () => {
    const text = [
      "import a from './a.ts';",
      "import type { B } from 'b';",
      'import {',
      '  c,',
      "} from './c.ts';",
      "import 'reflect-metadata';",
      "export * from './d.ts';",
      "export type { E } from './e.ts';",
      "import data from './f.json' with { type: 'json' };",
      "const g = await import('./g.ts');",
    ].join('\n');
    assert.deepEqual(
      importsOf(text).map(({ specifier, isTypeOnly, line }) => `${line} ${specifier}${isTypeOnly ? ' type' : ''}`),
      [
        '1 ./a.ts',
        '2 b type',
        '3 ./c.ts',
        '6 reflect-metadata',
        '7 ./d.ts',
        '8 ./e.ts type',
        '9 ./f.json',
        '10 ./g.ts',
      ],
    );
  });

  it('is not misled by exports, comments and strings', () => {
    const text = [
      "export const from = 'x';",
      " * import a from 'b';",
      '  const s = "import q from \'r\'";',
      'export { a };',
    ];
    assert.deepEqual(importsOf(text.join('\n')), []);
  });
});

describe('type names', () => {
  it('are declared once in shipped code', () => {
    const declaring = (path: string) => file(path, 'export interface Held {}', 'export const Held = 1;');
    assert.deepEqual(typeNameOffences([declaring('src/core/ip/a.ts'), declaring('src/core/ip/a.test.ts')]), []);
    assert.deepEqual(
      typeNameOffences([declaring('src/core/ip/a.ts'), declaring('src/agent/b.ts')]).map(({ path }) => path),
      ['src/agent/b.ts'],
    );
  });
});

describe('rooms', () => {
  const sentences = (source: SourceFile): string[] => roomOffences([source]).map(({ sentence }) => sentence);

  it('import those before them, and not those behind', () => {
    assert.deepEqual(sentences(importing('src/core/plan/a.ts', '../gateways/b.ts')), []);
    assert.deepEqual(sentences(importing('src/core/gateways/a.ts', '../plan/b.ts')), [
      'src/core/gateways may not import src/core/plan (../plan/b.ts): rooms import only those before them',
    ]);
    assert.deepEqual(sentences(importing('src/agent/heartbeat/a.ts', '../agent.ts')), [
      'src/agent/heartbeat may not import src/agent/. (../agent.ts): rooms import only those before them',
    ]);
  });

  it('have a place, and tests may import all of them', () => {
    assert.deepEqual(sentences(importing('src/core/cellar/a.ts', '../ip/b.ts')), [
      'src/core/cellar has no place in tools/boundaries/rooms.ts',
    ]);
    assert.deepEqual(sentences(importing('src/core/gateways/a.test.ts', '../plan/b.ts')), []);
  });
});

describe('layers', () => {
  const refused: [SourceFile, string][] = [
    [
      importing('src/core/ip/a.ts', '../../runtime/kube/client.ts'),
      'src/core may not import src/runtime (../../runtime/kube/client.ts); it may import src/api',
    ],
    [
      importing('src/api/a.ts', '../core/ip/index.ts'),
      'src/api may not import src/core (../core/ip/index.ts); it may import none',
    ],
    [
      importing('src/runtime/a.ts', '../core/ip/index.ts'),
      'src/runtime may not import src/core (../core/ip/index.ts); it may import src/api',
    ],
    [
      importing('src/dataplane/nft/a.ts', '../../runtime/log.ts'),
      'src/dataplane may not import src/runtime (../../runtime/log.ts); it may import src/api, src/core',
    ],
    [
      importing('src/controller/main.ts', '../agent/main.ts'),
      'src/controller may not import src/agent (../agent/main.ts); it may import src/api, src/core, src/runtime',
    ],
    [
      importing('src/controller/main.ts', '../main.ts'),
      'src/controller may not import src (../main.ts); it may import src/api, src/core, src/runtime',
    ],
    [
      importing('src/runtime/a.test.ts', '../../test/b.ts'),
      'src may not import test (../../test/b.ts); what both need belongs in src',
    ],
    [importing('src/main.ts', '../lab/up.ts'), 'src may not import lab (../lab/up.ts); what both need belongs in src'],
    [importing('src/web/a.ts', './b.ts'), 'src/web is not a layer yet; give it a row in tools/boundaries/layers.ts'],
    [
      importing('src/core/a.ts', 'node:fs'),
      'src/core is pure and may not import node:fs; take what you need as a parameter, or move the code to another layer',
    ],
    [
      importing('src/runtime/kube/client.ts', '../testing/api-server.ts'),
      'src/runtime/kube/client.ts is shipped and may not import what is for tests (../testing/api-server.ts)',
    ],
    [importing('src/core/a.ts', 'zod'), 'src/core may not import the package zod; it may import none'],
    [
      importing('src/cli/a.ts', '@scope/name/deep/file.js'),
      'src/cli may not import the package @scope/name; it may import commander, zod',
    ],
  ];
  for (const [source, sentence] of refused) {
    it(`refuses: ${sentence}`, () => {
      assert.deepEqual(importOffences([source]), [{ path: source.path, line: 1, sentence }]);
    });
  }

  it('lets a pure layer take pure functions from a module that has others', () => {
    const of = (clause: string) => importOffences([file('src/api/a.ts', `import ${clause} from 'node:net';`)]).length;
    assert.deepEqual(
      [of('{ isIP }'), of('{ isIPv4, isIPv6 }'), of('{ isIP, connect }'), of('net'), of('* as net')],
      [0, 0, 1, 1, 1],
    );
  });

  it('refuses a development package unless only its types are used', () => {
    assert.equal(importOffences([importing('src/runtime/a.ts', '@kubernetes/client-node')]).length, 1);
    assert.deepEqual(importOffences([importing('src/runtime/a.ts', '@kubernetes/client-node', 'import type')]), []);
  });

  const taken: SourceFile[] = [
    importing('src/core/ip/a.ts', './b.ts'),
    importing('src/core/plan/plan/a.ts', '../ip/index.ts'),
    importing('src/core/a.ts', '../api/error.ts'),
    importing('src/core/a.ts', 'node:util'),
    importing('src/runtime/kube/client.test.ts', '../testing/api-server.ts'),
    importing('src/runtime/testing/api-server.ts', './faults.ts'),
    importing('src/core/a.test.ts', 'node:net'),
    importing('src/core/a.test.ts', 'fast-check'),
    importing('src/agent/main.ts', '../dataplane/nft/index.ts'),
    importing('src/main.ts', './agent/main.ts'),
    importing('lab/a.ts', '../src/runtime/a.ts'),
    importing('tools/a.ts', '../lab/a.ts'),
  ];
  for (const source of taken) {
    it(`takes ${source.path}: ${source.text}`, () => assert.deepEqual(importOffences([source]), []));
  }
});

describe('tree', () => {
  it('wants a page in every folder that holds TypeScript', () => {
    const files = [
      file('src/core/a/x.ts'),
      file('src/core/b/x.ts'),
      file('src/core/b/README.md'),
      file('src/core/c/index.ts', '/** What c is. */'),
      file('lab/d/index.ts', 'export {};'),
      file('lab/go/main.go'),
      file('bench/x.ts'),
      file('x.ts'),
    ];
    assert.deepEqual(
      folderPageOffences(files).map(({ path }) => path),
      ['src/core/a', 'lab/d', 'bench'],
    );
  });

  it('allows 400 lines and not 401, whether or not the last line is ended', () => {
    assert.deepEqual(lengthOffences([{ path: 'src/a.ts', text: 'x\n'.repeat(400) }]), []);
    assert.equal(lengthOffences([{ path: 'src/a.ts', text: 'x\n'.repeat(401) }]).length, 1);
    assert.equal(lengthOffences([{ path: 'docs/a.md', text: 'x\n'.repeat(401) }]).length, 0);
  });

  it('wants an issue number behind a work note', () => {
    const note = glued('// TO', 'DO');
    const files = [file('lab/a.go', 'package a', `${note}: later`), file('lab/b.go', `${note}(#7): drop with 1.38`)];
    assert.deepEqual(
      workNoteOffences(files).map(({ path, line }) => `${path}:${line}`),
      ['lab/a.go:2'],
    );
  });

  it('finds clock, chance and process in pure layers only', () => {
    const line = 'const now = Date.now() + Math.random() + process.pid;';
    const offences = purityOffences([
      file('src/core/a.ts', line),
      file('src/runtime/a.ts', line),
      file('src/api/a.test.ts', line),
    ]);
    assert.deepEqual(
      offences.map(({ path, sentence }) => `${path} ${sentence.split(' ')[0]}`),
      ['src/core/a.ts Date.now', 'src/core/a.ts Math.random', 'src/core/a.ts process.pid'],
    );
  });
});

describe('machine text', () => {
  const held: string[] = [
    glued('cd /wo', 'rk/main'),
    glued('HOME=/ro', 'ot'),
    glued('see "/ho', 'me/anna/src"'),
    glued('https://registry.', 'npmjs.org/zod'),
    glued('GOPROXY=https://proxy.', 'golang.org'),
  ];
  for (const text of held) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(machineTextOffences([file('docs/a.md', text)]).length, 1));
  }

  it('refuses any address in a lock file', () => {
    const text = glued('"resolved"', ': "https://mirror.example/zod.tgz"');
    assert.equal(machineTextOffences([file('package-lock.json', text)]).length, 1);
  });

  it('takes paths that only look alike', () => {
    const text = glued('/proc/1/ro', 'ot/etc a/wo', 'rk/b $DIR/wo', 'rk/c /rootfs /workspace /home');
    assert.deepEqual(machineTextOffences([file('lab/a.sh', text)]), []);
  });
});

describe('readSourceFiles', () => {
  it('reads text files and leaves out what .gitignore names', (t) => {
    const root = mkdtempSync(join(tmpdir(), 'boundaries-'));
    t.after(() => rmSync(root, { recursive: true }));
    for (const folder of ['src/cli', 'dist', 'lab/out', 'src/node_modules/x'])
      mkdirSync(join(root, folder), { recursive: true });
    const texts = {
      '.gitignore': '# built\nnode_modules/\n/dist/\n*.log\nlab/out\n',
      'src/cli/a.ts': "import '../agent/b.ts';\n",
      'src/cli/a.log': 'x',
      'src/node_modules/x/index.js': 'x',
      'dist/a.js': 'x',
      'lab/out/a.txt': 'x',
      'logo.png': 'a\0b',
    };
    for (const [path, text] of Object.entries(texts)) writeFileSync(join(root, path), text);
    const files = readSourceFiles(root);
    assert.deepEqual(
      files.map(({ path }) => path),
      ['.gitignore', 'src/cli/a.ts'],
    );
    assert.deepEqual(
      offencesOf(files).map(({ path, line }) => `${path}:${line}`),
      ['src/cli/a.ts:1', 'src/cli:1'],
    );
  });

  it('says so when .gitignore is beyond it', (t) => {
    const root = mkdtempSync(join(tmpdir(), 'boundaries-'));
    t.after(() => rmSync(root, { recursive: true }));
    writeFileSync(join(root, '.gitignore'), '*.log\n!keep.log\n');
    assert.throws(() => readSourceFiles(root), /!keep\.log is a kind of pattern/);
  });
});
