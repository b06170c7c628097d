/**
 * Sources: whose addresses clients have. A rule belongs to namespaces, and a client is told by its address, which the API
 * says is a pod's. An address that nobody has, or two have at once, is nobody's; one of a proxy is refused everywhere, since
 * a proxy that is a client of a proxy is a loop.
 */

import { compareIps, type Ip } from '../../core/ip/index.ts';
import { type PodObject, projectPod } from '../../core/project/node.ts';
import type { From } from '../../core/proxy/from.ts';
import { hashText } from '../../core/values/hash.ts';

export interface Sources {
  /** Namespace -> addresses of its pods, sorted. */
  readonly namespaces: ReadonlyMap<string, readonly Ip[]>;
  /** Addresses of pods of proxies, sorted; they are in no namespace. */
  readonly proxies: readonly Ip[];
}

/** What is known before the first look. */
export const noSources: Sources = { namespaces: new Map(), proxies: [] };

/** A pod as far as it is a client. */
export interface SourcePod {
  readonly namespace: string;
  readonly ips: readonly Ip[];
  readonly isProxy: boolean;
}

/** Pods of proxies carry it (operator/objects/proxy-objects.ts). */
const proxyLabel = { key: 'app.kubernetes.io/name', value: 'sallyport-proxy' } as const;

/** A pod as a client. One that shares the addresses of its node, or has ended, has none that tells it from others. */
export const sourceOf = (object: PodObject): SourcePod => {
  const { namespace, labels, ipv4, ipv6, isHostNetwork, isFinished } = projectPod(object);
  const ips = isHostNetwork || isFinished ? [] : [...ipv4, ...ipv6];
  return { namespace, ips, isProxy: labels[proxyLabel.key] === proxyLabel.value };
};

/** Sources from pods, of which two may say that they have the same address. */
export const sourcesOf = (pods: Iterable<SourcePod>): Sources => {
  const proxies = new Set<Ip>();
  const holders = new Map<Ip, string | undefined>();
  for (const { namespace, ips, isProxy } of pods) {
    for (const ip of ips) {
      if (isProxy) proxies.add(ip);
      // Of two pods at one address one is gone, and nobody knows which.
      else holders.set(ip, !holders.has(ip) || holders.get(ip) === namespace ? namespace : undefined);
    }
  }
  const namespaces = new Map<string, Ip[]>();
  for (const [ip, namespace] of holders) {
    if (namespace === undefined || proxies.has(ip)) continue;
    const ips = namespaces.get(namespace);
    if (ips === undefined) namespaces.set(namespace, [ip]);
    else ips.push(ip);
  }
  return {
    namespaces: new Map([...namespaces].map(([namespace, ips]) => [namespace, ips.toSorted(compareIps)])),
    proxies: [...proxies].toSorted(compareIps),
  };
};

/** The same word for the same namespaces, and never part of another one. */
export const groupOf = (from: From): string =>
  from === undefined ? 'anyone' : `from-${hashText(JSON.stringify(from)).toString(16).padStart(8, '0')}`;

/** Addresses that may use a rule of the namespaces. */
export const addressesFrom = ({ namespaces }: Sources, from: readonly string[]): Ip[] =>
  from.flatMap((namespace) => namespaces.get(namespace) ?? []);

/** Tells for single addresses what Sources say of all. */
export class SourceIndex {
  readonly #proxies: ReadonlySet<Ip>;
  readonly #namespaceOf: ReadonlyMap<Ip, string>;

  constructor({ namespaces, proxies }: Sources) {
    this.#proxies = new Set(proxies);
    this.#namespaceOf = new Map([...namespaces].flatMap(([namespace, ips]) => ips.map((ip) => [ip, namespace])));
  }

  mayUse(ip: Ip, from: From): boolean {
    if (this.#proxies.has(ip)) return false;
    if (from === undefined) return true;
    const namespace = this.#namespaceOf.get(ip);
    return namespace !== undefined && from.includes(namespace);
  }
}
