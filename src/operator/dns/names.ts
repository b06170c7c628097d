/** PublishedNames keeps the names of rules in the DNS of the cluster, and asks it whether they answer. */
import { type Finding, finding } from '../../core/cluster/finding.ts';
import { isInvalid, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import type { ObjectRef } from '../../runtime/kube/resource.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { ConfigMap } from '../inputs/caches.ts';
import { resources } from '../objects/kind.ts';
import { type HostEntries, namesIn, placeHosts } from './corefile.ts';

/** All addresses of a name, as the DNS of the cluster answers now; empty when it has none. Rejects when it does not answer. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface PublishedNamesDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly configMap: ObjectRef;
  /** As the cache has it. */
  readonly current: () => ConfigMap | undefined;
  readonly resolve: Resolve;
  /** Called when a name begins or ceases to answer. */
  readonly onChange: () => void;
}

const key = 'Corefile';
/** How often a name is asked for that does not answer yet, and one that did. */
const waitingMs = 1_000;
const answeringMs = 30_000;

interface NameLookup {
  readonly ips: readonly string[];
  isAnswering: boolean;
  askedAtMs: number;
}

export class PublishedNames {
  readonly #deps: PublishedNamesDeps;
  /** name -> how it answers; one entry per name that is wanted */
  readonly #asked = new Map<string, NameLookup>();
  #refusal: string | undefined;
  #before: ReadonlySet<string> | undefined;

  constructor(deps: PublishedNamesDeps) {
    this.#deps = deps;
  }

  /** The names that an operator before this one has published; nothing that this one does changes them. */
  get before(): ReadonlySet<string> {
    this.#before ??= namesIn(this.#deps.current()?.data?.[key] ?? '');
    return this.#before;
  }

  /** Makes the entries so. Rejects with an ApiError when the server refuses or cannot be reached. */
  async apply(entries: HostEntries, signal: AbortSignal): Promise<void> {
    for (const name of this.#asked.keys()) if (!entries.has(name)) this.#asked.delete(name);
    for (const [name, ips] of entries) {
      const asked = this.#asked.get(name);
      if (asked === undefined || asked.ips.join() !== ips.join()) {
        this.#asked.set(name, { ips, isAnswering: false, askedAtMs: Number.NEGATIVE_INFINITY });
      }
    }
    const { current, configMap, client } = this.#deps;
    const corefile = current()?.data?.[key];
    if (corefile === undefined) {
      this.#refusal =
        entries.size === 0 ? undefined : `ConfigMap ${configMap.namespace}/${configMap.name} has no ${key}`;
      return;
    }
    const placed = placeHosts(corefile, entries);
    this.#refusal = placed.ok ? undefined : `ConfigMap ${configMap.namespace}/${configMap.name}: ${placed.why}`;
    if (!placed.ok || placed.text === corefile) return;
    try {
      const operations = [
        { op: 'test', path: `/data/${key}`, value: corefile },
        { op: 'replace', path: `/data/${key}`, value: placed.text },
      ] as const;
      await client.patch(resources.configMaps, configMap, { kind: 'json', operations }, { signal });
    } catch (error) {
      // Somebody has changed it meanwhile; the cache will tell, and then we look again.
      if (!isInvalid(error) && !isNotFound(error)) throw error;
    }
  }

  /** How a name stands. */
  finding(name: string): Finding {
    if (this.#refusal !== undefined) return finding('DnsNotOurs', `${name} is not published: ${this.#refusal}.`);
    const asked = this.#asked.get(name);
    return asked?.isAnswering
      ? finding('NamesPublished', `${name} leads to ${asked.ips.join(', ')}.`)
      : finding('NameNotAnswering', `${name} does not lead to ${asked?.ips.join(', ') ?? 'the proxy'} yet.`);
  }

  /** Asks for the names until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const nowMs = clock.monotonicMs();
      const due = [...this.#asked].filter(
        ([, { isAnswering, askedAtMs }]) => nowMs - askedAtMs >= (isAnswering ? answeringMs : waitingMs),
      );
      await Promise.all(due.map(([name, asked]) => this.#ask(name, asked, signal)));
      await wait(clock, waitingMs / 4, signal);
    }
  }

  async #ask(name: string, asked: NameLookup, signal: AbortSignal): Promise<void> {
    const { clock, resolve, onChange } = this.#deps;
    asked.askedAtMs = clock.monotonicMs();
    let isAnswering = asked.isAnswering;
    try {
      const found = await resolve(name, signal);
      isAnswering = found.length > 0 && found.every((ip) => asked.ips.includes(ip));
    } catch {
      // A DNS that is away says nothing about the name.
    }
    if (isAnswering === asked.isAnswering || signal.aborted) return;
    asked.isAnswering = isAnswering;
    onChange();
  }
}
