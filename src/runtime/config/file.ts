/**
 * ConfigFile keeps the configuration of a process in step with a YAML file. A file that becomes bad changes nothing:
 * the last good configuration stays in force, and the fault is reported. Read `ConfigFile.open` first.
 */

import { watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { z } from 'zod';
import { EgressError } from '../../api/error.ts';
import { isBug, messageOf } from '../process/bug.ts';
import { type Clock, wait } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { configError, parseConfig } from './parse.ts';

/** The part of the file system that is needed. */
export interface ConfigFs {
  /** Rejects when the file cannot be read or is larger than `maxConfigBytes`. */
  readText(path: string): Promise<string>;
  /** Calls back after anything in the folder changed; the returned function ends that. May miss changes. */
  watchFolder(path: string, onChange: () => void): () => void;
}

/** The API server refuses ConfigMaps above 1 MiB. A larger file is a mistake. */
export const maxConfigBytes = 1024 * 1024;

/** The file system of the machine. */
export const systemConfigFs: ConfigFs = {
  async readText(path) {
    const { size } = await stat(path);
    if (size > maxConfigBytes) throw new Error(`it has ${size} bytes: allowed is at most ${maxConfigBytes}`);
    return await readFile(path, 'utf8');
  },
  watchFolder(path, onChange) {
    try {
      const watcher = watch(path, () => onChange());
      // Out of inotify watches, or the folder is gone: the slow poll goes on.
      watcher.on('error', () => watcher.close());
      return () => watcher.close();
    } catch {
      return () => undefined;
    }
  },
};

/** What a configuration file tells its metrics. */
export interface ConfigHooks {
  /** Whether the file as it is now is the configuration in force. */
  inForce(isCurrent: boolean): void;
}

/** What a configuration file needs. */
export interface ConfigDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly fs?: ConfigFs;
  readonly hooks?: ConfigHooks;
}

/** Editors and the kubelet touch several files for one change; they are given this long to finish. */
const quietMs = 100;
/** The poll catches what a watch misses, on network file systems for example. */
const pollMs = 60_000;

/** A configuration that follows its file. */
export class ConfigFile<S extends z.ZodType> {
  readonly path: string;
  readonly #schema: S;
  readonly #deps: ConfigDeps;
  readonly #fs: ConfigFs;
  readonly #listeners = new Set<(value: z.output<S>) => void>();
  #current: z.output<S>;
  /** The text of the configuration in force. */
  #text: string;
  /** Why the file as it is now is not in force; undefined when it is. */
  #fault: string | undefined;

  private constructor(path: string, schema: S, deps: ConfigDeps, text: string, value: z.output<S>) {
    this.path = path;
    this.#schema = schema;
    this.#deps = deps;
    this.#fs = deps.fs ?? systemConfigFs;
    this.#text = text;
    this.#current = value;
  }

  /** Reads the file for the first time; throws CONFIG_INVALID with one sentence when it cannot be used. */
  static async open<S extends z.ZodType>(path: string, schema: S, deps: ConfigDeps): Promise<ConfigFile<S>> {
    const text = await readText(deps.fs ?? systemConfigFs, path);
    const parsed = parseConfig(text, schema);
    if (!parsed.ok) throw configError(path, parsed.problems);
    deps.hooks?.inForce(true);
    return new ConfigFile(path, schema, deps, text, parsed.value);
  }

  /** The configuration in force. */
  get current(): z.output<S> {
    return this.#current;
  }

  /** Calls back with every new configuration; the returned function ends that. */
  changed(listener: (value: z.output<S>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the file until the signal is aborted. Rejects only on a bug. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let wake = new AbortController();
    // The folder and not the file: a ConfigMap volume is updated by renaming the symlink `..data` beside it.
    const unwatch = this.#fs.watchFolder(dirname(this.path), () => wake.abort());
    const stop = (): void => wake.abort();
    signal.addEventListener('abort', stop, { once: true });
    try {
      while (!signal.aborted) {
        await this.reload();
        await wait(clock, pollMs, wake.signal);
        wake = new AbortController();
        await wait(clock, quietMs, signal);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      unwatch();
    }
  }

  /** Looks at the file now. An unchanged text does nothing; a bad one is reported once and changes nothing. */
  async reload(): Promise<void> {
    const { log, hooks } = this.#deps;
    try {
      const text = await readText(this.#fs, this.path);
      if (text === this.#text && this.#fault === undefined) return;
      const parsed = parseConfig(text, this.#schema);
      if (!parsed.ok) throw configError(this.path, parsed.problems);
      this.#text = text;
      this.#current = parsed.value;
      this.#fault = undefined;
    } catch (error) {
      if (isBug(error)) throw error;
      this.#report(messageOf(error));
      return;
    }
    hooks?.inForce(true);
    log.info({ component: 'config', path: this.path }, 'the file is in force');
    for (const listener of this.#listeners) listener(this.#current);
  }

  #report(fault: string): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    this.#deps.hooks?.inForce(false);
    this.#deps.log.error(
      { component: 'config', path: this.path },
      `${fault}; the last good configuration stays in force`,
    );
  }
}

async function readText(fs: ConfigFs, path: string): Promise<string> {
  try {
    return await fs.readText(path);
  } catch (cause) {
    const isAbsent = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const why = isAbsent ? 'there is no such file' : messageOf(cause);
    throw new EgressError('CONFIG_INVALID', `${path}: the configuration cannot be read: ${why}`, {
      data: { path },
      cause,
    });
  }
}
