import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { build } from 'esbuild';
import packageJson from '../package.json' with { type: 'json' };
import { bundle, unread } from './bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-bundle-'));
after(() => rmSync(folder, { recursive: true }));
const made = await bundle(folder);
const run = (...argv: readonly string[]): string =>
  execFileSync(process.execPath, argv, { cwd: '/', encoding: 'utf8' });

test('the bundle runs far from the tree and is the same program', () => {
  assert.equal(run(made.main, '--version').trim(), packageJson.version);
  const tree = join(import.meta.dirname, '..', 'src', 'main.ts');
  assert.equal(run(made.main, 'crds'), run(tree, 'crds'));
});

test('every command of the program is in the bundle, and says what it takes', () => {
  const commands = [...run(made.main, '--help').matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name);
  assert.ok(commands.includes('controller'), commands.join(', '));
  for (const command of commands) assert.match(run(made.main, command, '--help'), new RegExp(`sallyport ${command}`));
});

test('the native addon lies beside the bundle and can be loaded from there', () => {
  const probe = join(folder, 'probe.js');
  writeFileSync(probe, "const { default: koffi } = await import('koffi'); console.log(typeof koffi.load(null).func);");
  assert.equal(run(probe).trim(), 'function');
});

test('the thread of heartbeats lies beside the program, where the agent looks for it, and runs', () => {
  // Whoever starts it names it from the folder of the parts.
  const parts = readdirSync(join(folder, 'parts')).filter((name) => name.endsWith('.js'));
  const starter = parts.filter((name) =>
    readFileSync(join(folder, 'parts', name), 'utf8').includes('../heartbeat-thread.js'),
  );
  assert.equal(starter.length, 1);
  const probe = join(folder, 'start-thread.js');
  const data = `{ node: 'n', address: '127.0.0.1', port: 0, keys: [new Uint8Array(32)], held: [],
    timing: { heartbeatMs: 100, heartbeatCount: 4, graceMs: 1600 }, firstSignature: undefined }`;
  writeFileSync(
    probe,
    `import { Worker } from 'node:worker_threads';
     const worker = new Worker(new URL('./heartbeat-thread.js', import.meta.url), { workerData: ${data} });
     worker.on('message', ({ kind }) => { console.log(kind); process.exit(0); });`,
  );
  assert.equal(run(probe).trim(), 'listening');
});

test('what no process asks for is not in it', () => {
  const parts = readdirSync(join(folder, 'parts')).filter((name) => name.endsWith('.js'));
  const text = parts.map((name) => readFileSync(join(folder, 'parts', name), 'utf8')).join('\n');
  assert.match(text, /Invalid input: expected/, 'zod speaks English');
  assert.doesNotMatch(text, /Entr\\xE9e invalide/, 'and nothing else');
  assert.match(text, /keepAliveTimeout/, 'undici has connections');
  assert.doesNotMatch(text, /MockAgent/, 'and no mocks');
  assert.doesNotMatch(text, /UNDICI_USE_MILO/, 'and one parser');
});

test('what is left of undici still makes requests', async () => {
  const script = `
    import { createServer } from 'node:http';
    import { Pool } from 'undici';
    const server = createServer((_, response) => response.end('answered')).listen(0, '127.0.0.1', async () => {
      const pool = new Pool('http://127.0.0.1:' + server.address().port, { allowH2: false });
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/' });
      const more = process.moduleLoadList.filter((name) => /http2|deps\\/undici/.test(name));
      console.log(statusCode, await body.text(), more.length);
      process.exit(0);
    });`;
  const outfile = join(folder, 'request.js');
  await build({
    stdin: { contents: script, resolveDir: import.meta.dirname },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    plugins: [unread],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  assert.equal(run(outfile).trim(), '200 answered 0', 'without HTTP/2 and the undici of Node');
});

test('the same sources give the same digest, so that nothing is rolled out for nothing', async () => {
  assert.equal((await bundle(join(folder, 'again'))).digest, made.digest);
});

test('the thread of the mirror lies beside the program too, and runs', () => {
  const parts = readdirSync(join(folder, 'parts')).filter((name) => name.endsWith('.js'));
  const starter = parts.filter((name) =>
    readFileSync(join(folder, 'parts', name), 'utf8').includes('../mirror-thread.js'),
  );
  assert.equal(starter.length, 1);
  const probe = join(folder, 'start-mirror.js');
  writeFileSync(
    probe,
    `import { Worker } from 'node:worker_threads';
     const workerData = { node: 'n', address: '127.0.0.1', port: 0, keys: [new Uint8Array(32)] };
     const worker = new Worker(new URL('./mirror-thread.js', import.meta.url), { workerData });
     worker.on('message', ({ kind }) => { console.log(kind); process.exit(0); });`,
  );
  assert.equal(run(probe).trim(), 'listening');
});
