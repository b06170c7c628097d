/**
 * Makes the program of the image: src/main.ts with all packages in it, and koffi beside it, whose native addon no bundle
 * can hold. An image is this folder, Node, and the programs nft, ip, bridge and conntrack.
 *
 *   node tools/bundle.ts FOLDER
 *
 * Each command is a part of its own that is read when it is asked for. In one file all of them were read by every process:
 * `sallyport --version` took 77 MB and 140 ms instead of 55 MB and 70 ms (2026-11-15, controller only).
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';

/** A bundle on disk. */
export interface Bundle {
  /** The file that Node runs. */
  readonly main: string;
  /** SHA-256 of all that was written, in hexadecimal digits: the same sources give the same one. */
  readonly digest: string;
  readonly sizeBytes: number;
}

const root = join(import.meta.dirname, '..');
const NAME = 'sallyport';
// Maps tell where sources are, seen from the output: from here, wherever it goes, so that the place does not change it.
const UNWRITTEN = join(root, 'bundle');
// The package and the folder of its addons, of which only that of this platform is installed.
const NATIVE = ['koffi', '@koromix'];
// Packages that were written for require() use it for modules of Node, and a bundle of modules has none.
const BANNER = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/**
 * Parts of packages that nobody asks for, but that would be read by every process: of undici all but its pool of connections by
 * HTTP/1.1, of zod all languages but English. And of Node: an `import` of `node:http` reads everything that it offers, also what it would
 * load when asked for, a second undici with HTTP/2 and archives; with require() it does not.
 */
export const unread: Plugin = {
  name: 'unread',
  setup: ({ onResolve, onLoad, initialOptions }) => {
    // By this word undici leaves its second parser of HTTP out, which is on trial: 170 kB that every process would keep as text.
    initialOptions.define = { ...initialOptions.define, esbuildDetection: 'true' };
    onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace: 'unread' }));
    onResolve({ filter: /\/locales\/index\.js$/ }, ({ resolveDir }) =>
      /[\\/]zod[\\/]/.test(resolveDir) ? { path: 'locales', namespace: 'unread' } : undefined,
    );
    onLoad({ filter: /^undici$/, namespace: 'unread' }, () => ({
      // As the index of undici does it.
      contents: `
        import request from 'undici/lib/api/api-request.js';
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
        import Pool from 'undici/lib/dispatcher/pool.js';
        Object.assign(Dispatcher.prototype, { request });
        export { Pool };`,
      resolveDir: root,
    }));
    onResolve({ filter: /\/client-h2\.js$/ }, () => ({ path: 'client-h2', namespace: 'unread' }));
    onLoad({ filter: /^client-h2$/, namespace: 'unread' }, () => ({
      contents: "module.exports = () => { throw new Error('HTTP/2 is not in the bundle'); };",
    }));
    onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'unread' } : undefined,
    );
    onLoad({ filter: /^node:http$/, namespace: 'unread' }, () => ({
      contents: "module.exports = require('node:http');",
    }));
    onLoad({ filter: /^locales$/, namespace: 'unread' }, () => ({
      contents: "export { default as en } from 'zod/v4/locales/en.js';",
      resolveDir: root,
    }));
  },
};

/** Writes the bundle into a folder, which is made if it is not there. Takes a few hundred milliseconds. */
export const bundle = async (folder: string): Promise<Bundle> => {
  const { outputFiles } = await build({
    // Threads are started by their file, which lies beside the program.
    entryPoints: {
      [NAME]: join(root, 'src', 'main.ts'),
      'heartbeat-thread': join(root, 'src', 'agent', 'heartbeat', 'thread.ts'),
      'mirror-thread': join(root, 'src', 'agent', 'mirror', 'thread.ts'),
    },
    outdir: UNWRITTEN,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    chunkNames: 'parts/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node26',
    external: ['koffi'],
    plugins: [unread],
    banner: { js: BANNER },
    // Names stay, so that a stack trace can be read without the map; the map holds no copy of the sources.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: 'linked',
    sourcesContent: false,
    write: false,
    logLevel: 'silent',
  });
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for (const { path, contents } of outputFiles.toSorted((left, right) => (left.path < right.path ? -1 : 1))) {
    const file = join(folder, relative(UNWRITTEN, path));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, contents);
    hash.update(contents);
    if (path.endsWith('.js')) sizeBytes += contents.length;
  }
  // Without it Node would read each file twice to find out that it is a module.
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  for (const name of NATIVE) {
    cpSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true });
  }
  return { main: join(folder, `${NAME}.js`), digest: hash.digest('hex'), sizeBytes };
};

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) {
    process.stderr.write('bundle: name a folder: node tools/bundle.ts FOLDER\n');
    process.exitCode = 2;
  } else {
    const { main, digest, sizeBytes } = await bundle(folder);
    process.stdout.write(`${main}: ${Math.round(sizeBytes / 1000)} kB, sha256:${digest}\n`);
  }
}
