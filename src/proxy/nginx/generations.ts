/**
 * Generations on disk: a folder for each configuration, and the link `current` to the one in force. Folders are never written
 * twice and the link is replaced in one step, so nginx always reads a whole configuration, also after a crash.
 */
import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import type { NginxConfig } from './render.ts';

const PREFIX = 'generation-';
const FILE = 'nginx.conf';

export class Generations {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The configuration that nginx is started with. */
  get currentFile(): string {
    return `${this.#folder}/current/${FILE}`;
  }

  /** Writes a configuration and returns its file; one that is there already stays. */
  async write({ generation, text }: NginxConfig): Promise<string> {
    const folder = `${this.#folder}/${PREFIX}${generation}`;
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/${FILE}`, text);
    return `${folder}/${FILE}`;
  }

  /** Makes a written configuration the one that nginx reads next; returns the one before, if any. */
  async choose(generation: string): Promise<string | undefined> {
    const link = `${this.#folder}/current`;
    const before = await readlink(link).catch(() => undefined);
    await symlink(`${PREFIX}${generation}`, `${link}.new`);
    await rename(`${link}.new`, link);
    return before?.slice(PREFIX.length);
  }

  /** Removes all but the named ones. */
  async keep(generations: readonly string[]): Promise<void> {
    const wanted = new Set(generations.map((generation) => `${PREFIX}${generation}`));
    const entries = (await readdir(this.#folder)).filter((entry) => entry.startsWith(PREFIX));
    for (const entry of entries.filter((one) => !wanted.has(one))) {
      await rm(`${this.#folder}/${entry}`, { recursive: true, force: true });
    }
  }

  /** Removes everything that an earlier process left. */
  async clear(): Promise<void> {
    for (const entry of await readdir(this.#folder)) await rm(`${this.#folder}/${entry}`, { recursive: true });
  }

  /** Removes the sockets of a program that was killed: nginx does not start while their names exist. */
  async clearSockets(): Promise<void> {
    const entries = (await readdir(this.#folder)).filter((entry) => entry.endsWith('.sock'));
    for (const entry of entries) await rm(`${this.#folder}/${entry}`, { force: true });
  }
}
