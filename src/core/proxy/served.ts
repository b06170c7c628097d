/**
 * Served rules: what a proxy is to do, after everything that concerns other objects was decided. Operator and proxies make
 * it from the same objects with the same function, so they agree without talking.
 */
import type { Ip } from '../ip/index.ts';

/** All that one proxy serves. The revision is a hash of all the rest: equal revisions are equal rules. */
export interface RuleSet {
  readonly revision: string;
  /** `namespace/name` of the BCSEgressController: clients that are refused read it. */
  readonly name: string;
  /** In order of their ids. No two TCP rules have the same port, and no two HTTP rules the same host, `isTls` and port. */
  readonly rules: readonly ServedRule[];
  /** CIDRs where no name may lead: the cluster itself, and all that is private, local or special. */
  readonly forbidden: readonly string[];
}

export type ServedRule = TcpServed | HttpServed;

/** A port of the proxy whose connections go to an outside destination. */
export interface TcpServed {
  readonly kind: 'tcp';
  /** `namespace/egress/rule`: the same in status, metrics, logs and files. */
  readonly id: string;
  readonly listenPort: number;
  readonly destPort: number;
  readonly to: TcpTarget;
  readonly algorithm: 'roundrobin' | 'least_conn' | 'hash';
  /** How long a connection may be silent. */
  readonly idleSeconds: number;
  /** Namespaces whose pods may use it, sorted; absent: whoever reaches the proxy. */
  readonly from?: readonly string[];
}

/** Addresses that the rule names are allowed wherever they are; a name is resolved outside and guarded. */
export type TcpTarget =
  | { readonly kind: 'addresses'; readonly ips: readonly Ip[] }
  | { readonly kind: 'domain'; readonly name: string };

/** A host that clients may reach through the HTTP proxy: plain, or with TLS by CONNECT or SNI. */
export interface HttpServed {
  readonly kind: 'http';
  readonly id: string;
  readonly host: HostPattern;
  readonly isTls: boolean;
  readonly destPort: number;
  /** Namespaces whose pods may use it, sorted; absent: whoever reaches the proxy. */
  readonly from?: readonly string[];
}

/** Names are in lower case and without the last dot. A suffix is what stands after `*`, such as `.example.com`. */
export type HostPattern =
  | { readonly kind: 'exact'; readonly name: string }
  | { readonly kind: 'suffix'; readonly suffix: string }
  | { readonly kind: 'address'; readonly ip: Ip };

/**
 * Ports of a proxy pod that no rule may listen on. The Service of the proxy has the usual ones before them: 80 and 3128
 * for `http`, 443 for `tls`.
 */
export const proxyPorts = {
  /** Health, metrics and the report. */
  report: 61000,
  /** The engine's own administration, on the loopback interface. */
  admin: 61001,
  /** The guarding resolver, on the loopback interface. */
  dns: 61053,
  /** The HTTP proxy: absolute form, CONNECT, and plain requests of clients that were led here by DNS. */
  http: 61080,
  /** TLS of clients that were led here by DNS: the host is read from SNI. */
  tls: 61443,
} as const;

/** The range that `proxyPorts` are in. */
export const reservedPorts = { first: 61000, last: 61499 } as const;
