/**
 * The objects of the egress proxy as decisions see them. A rule that cannot be read keeps its place and name and has a
 * `problem`; it is never served. Lists may come in any order.
 */
import type { BCSEgressControllerSpec } from '../../api/bcs-egress-controller.ts';
import type { Finding } from '../cluster/finding.ts';
import type { Labels, Selector } from '../cluster/labels.ts';
import type { ClusterRanges } from '../cluster/view.ts';
import type { IntervalSet, Ip } from '../ip/index.ts';
import type { HostPattern, TcpTarget } from './served.ts';

/** All that the plan of the proxies is made from. */
export interface ProxiesView {
  readonly egresses: readonly EgressView[];
  readonly proxies: readonly ProxyView[];
  /** Labels by the name of the namespace; one that is missing has no labels. */
  readonly namespaces: ReadonlyMap<string, Labels>;
  readonly ranges: ClusterRanges;
  /** Names of the cluster's own, which no rule may have, nor any name below them; such as `cluster.local`. */
  readonly reservedNames: readonly string[];
}

/** A BCSEgress. */
export interface EgressView {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdAtMs: number;
  readonly generation: number;
  readonly isDeleting: boolean;
  /** True when the operator has seen this generation: what a proxy waits for before it serves it. */
  readonly isSeen: boolean;
  /** `namespace/name` of the BCSEgressController. */
  readonly proxy: string;
  /** Who may use the rules besides the own namespace; undefined: as the proxy says. */
  readonly sources: SourcesView | undefined;
  /** In the order of the object: TCP rules first. Names are unique. */
  readonly rules: readonly RuleView[];
  /** Why the object cannot be read at all; then it has no rules. */
  readonly problem: Finding | undefined;
}

/** Whose pods may use rules, besides those of the object's own namespace. */
export type SourcesView =
  | { readonly kind: 'any' }
  | {
      readonly kind: 'namespaces';
      readonly namespaces: readonly string[];
      /** Undefined: none by labels. */
      readonly selector: Selector | undefined;
    };

export type RuleView = TcpRuleView | HttpRuleView | BrokenRuleView;

export interface TcpRuleView {
  readonly kind: 'tcp';
  readonly name: string;
  readonly sourcePort: number;
  readonly destPort: number;
  readonly to: TcpTarget;
  readonly algorithm: 'roundrobin' | 'least_conn' | 'hash';
  readonly idleSeconds: number;
}

export interface HttpRuleView {
  readonly kind: 'http';
  readonly name: string;
  readonly host: HostPattern;
  readonly isTls: boolean;
  readonly destPort: number;
  /** True when the DNS of the cluster is to lead the name to the proxy. */
  readonly isTransparent: boolean;
}

/** A rule that cannot be read; `of` tells in which list it stands. */
export interface BrokenRuleView {
  readonly kind: 'broken';
  readonly of: 'tcp' | 'http';
  readonly name: string;
  readonly problem: Finding;
}

/** A BCSEgressController: one shared proxy. */
export interface ProxyView {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly engine: 'envoy' | 'nginx';
  /** Empty: those of the operator. */
  readonly nameservers: readonly Ip[];
  readonly allowedRanges: IntervalSet;
  /** Names that rules may publish, and all below them; undefined: any that is not reserved. */
  readonly allowedNames: readonly string[] | undefined;
  /** True when rules are for everybody whose object does not say anything else. */
  readonly isForAnyone: boolean;
  /** Undefined: every namespace may claim everything. */
  readonly tenants: readonly TenantView[] | undefined;
  /** How it is to be run; the defaults where the spec cannot be read. */
  readonly run: BCSEgressControllerSpec;
  readonly problems: readonly Finding[];
}

/** What some namespaces may claim. */
export interface TenantView {
  readonly namespaces: readonly string[];
  /** Undefined: none by labels. */
  readonly selector: Selector | undefined;
  /** Where rules may lead; undefined: anywhere. */
  readonly to: { readonly domains: readonly string[]; readonly ranges: IntervalSet } | undefined;
  /** Source ports; undefined: any. */
  readonly ports: readonly { readonly first: number; readonly last: number }[] | undefined;
}
