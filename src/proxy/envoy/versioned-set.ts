/** Resources of one file as text, and for each the version of the update with which it last changed. */
import type { EnvoyMessage } from './message.ts';

interface Versioned {
  readonly text: string;
  readonly version: number;
}

export class VersionedSet {
  #resources: ReadonlyMap<string, Versioned> = new Map();
  #retried: ReadonlySet<string> = new Set();

  has(name: string): boolean {
    return this.#resources.has(name);
  }

  /**
   * Makes these the resources, and keeps others that were there if asked to; true when that is a change, or when one is to be
   * tried again.
   */
  set(resources: ReadonlyMap<string, EnvoyMessage>, version: number, keepsOthers = false): boolean {
    let isChange = false;
    const next = new Map<string, Versioned>(keepsOthers ? this.#resources : []);
    for (const [name, resource] of resources) {
      const text = JSON.stringify(resource);
      const before = this.#resources.get(name);
      const isSame = before?.text === text && !this.#retried.has(name);
      if (!isSame) isChange = true;
      next.set(name, isSame ? before : { text, version });
    }
    if (next.size !== this.#resources.size) isChange = true;
    this.#resources = next;
    this.#retried = new Set();
    return isChange;
  }

  /** Names of resources that are not in force as they last changed. A program that was started again has all in the newest. */
  notIn(versionInForce: (name: string) => number | undefined): string[] {
    return [...this.#resources]
      .filter(([name, { version }]) => (versionInForce(name) ?? 0) < version)
      .map(([name]) => name);
  }

  /** These were refused: the next `set` gives them again, changed or not. */
  retry(names: readonly string[]): void {
    this.#retried = new Set(names);
  }

  /** The text of the file. The version tells which update put a resource in force. */
  fileText(version: number): string {
    const texts = [...this.#resources.values()].map(({ text }) => text);
    return `{"version_info":"${version}","resources":[${texts.join(',\n')}]}`;
  }
}
