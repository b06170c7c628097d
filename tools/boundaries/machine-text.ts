/** No text file may hold a path of one machine or the host of a package registry: both break everywhere else. */
import { lineAt, type Offence, type SourceFile } from './source-files.ts';

const PERSONAL_PATH = /(?<![\w.$})\]*-])\/(?:root|work|home\/[\w-]+)(?:\/|(?=["'`\s:]|$))/gm;
const LOCKED_ADDRESS = /"resolved":\s*"https?:/g;

// The names are put together here so that this file passes its own rule.
const REGISTRY_HOSTS = [
  ['registry', 'npmjs', 'org'],
  ['registry', 'yarnpkg', 'com'],
  ['registry', 'npmmirror', 'com'],
  ['npm', 'pkg', 'github', 'com'],
  ['proxy', 'golang', 'org'],
  ['goproxy', 'io'],
  ['goproxy', 'cn'],
  ['files', 'pythonhosted', 'org'],
  ['deb', 'debian', 'org'],
].map((parts) => parts.join('.'));
const REGISTRY = new RegExp(`(?:${REGISTRY_HOSTS.map((host) => RegExp.escape(host)).join('|')})|/artif[a]ctory/`, 'g');

/** Every path of a home or work folder, every registry host, and every address in a lock file. */
export const machineTextOffences = (files: readonly SourceFile[]): Offence[] =>
  files.flatMap((file) => [
    ...offencesOf(file, PERSONAL_PATH, (found) => `${found} is a path of one machine; derive it, or make it a setting`),
    ...offencesOf(file, REGISTRY, (found) => `${found} is a registry; leave the choice to the reader's own settings`),
    ...(file.path.endsWith('package-lock.json')
      ? offencesOf(file, LOCKED_ADDRESS, () => 'the lock file names a registry; run npm install with our .npmrc')
      : []),
  ]);

const offencesOf = (file: SourceFile, pattern: RegExp, sentenceFor: (found: string) => string): Offence[] =>
  [...file.text.matchAll(pattern)].map((match) => ({
    path: file.path,
    line: lineAt(file.text, match.index),
    sentence: sentenceFor(match[0]),
  }));
