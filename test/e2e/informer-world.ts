/** What the tests of the informer on a real API server look at: ConfigMaps, and somebody who changes them all the time. */
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../src/runtime/kube/api-error.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { coreResource, type KubeObject, keyOf } from '../../src/runtime/kube/resource.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';

export const configMaps = coreResource('configmaps', 'ConfigMap', true);

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** Changes ConfigMaps all the time and takes an outage as it comes. */
export class Writer {
  readonly #client: KubeClient;
  #isPaused = false;
  #isIdle = false;
  changes = 0;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#isIdle = this.#isPaused;
      if (!this.#isPaused) await this.#change();
      await delay(10);
    }
  }

  async pause(): Promise<void> {
    this.#isPaused = true;
    await eventually('the writer pauses', () => this.#isIdle);
  }

  resume(): void {
    this.#isPaused = false;
  }

  async #change(): Promise<void> {
    const name = `cm-${Math.floor(Math.random() * 60)}`;
    const options = { timeoutMs: 2_000, retries: 0 };
    try {
      if (Math.random() < 0.3) await this.#client.delete(configMaps, { namespace: 'default', name }, options);
      else
        await this.#client.apply(configMaps, configMap(name, String(this.changes)), {
          fieldManager: 'writer',
          ...options,
        });
      this.changes += 1;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
}

export function configMap(name: string, value: string): ConfigMap {
  return { metadata: { namespace: 'default', name }, data: { value } };
}

/** What the server holds, read afresh. */
export async function freshList(client: KubeClient): Promise<Map<string, { value: string }>> {
  const found = new Map<string, { value: string }>();
  for await (const page of client.list<ConfigMap>(configMaps, { namespace: 'default', pageSize: 25 })) {
    for (const object of page.items) found.set(keyOf(object), { value: object.data?.value ?? '' });
  }
  return found;
}

/** The largest number of instants within any window of one second. */
export function busiestSecond(instantsMs: readonly number[]): number {
  let first = 0;
  return instantsMs.reduce((most, instant, last) => {
    while (instant - (instantsMs[first] ?? instant) >= 1_000) first += 1;
    return Math.max(most, last - first + 1);
  }, 0);
}

/** Whether the server takes a write. */
export async function isReady(client: KubeClient): Promise<boolean> {
  try {
    const options = { retries: 0, timeoutMs: 1_000 };
    await client.apply(configMaps, configMap('readiness', '1'), { fieldManager: 'checker', ...options });
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/** Whether a store holds what the server does. */
export function isSame(
  store: ReadonlyMap<string, { value: string }>,
  truth: ReadonlyMap<string, { value: string }>,
): boolean {
  return store.size === truth.size && [...truth].every(([key, { value }]) => store.get(key)?.value === value);
}
