/**
 * The ignore set: destinations that belong to the cluster, by where they were found, and merged. A policy without
 * destinations leaves them alone, so what is missing here sends traffic of the cluster out of it: every source that was
 * to be detected and was not found is told.
 */
import type { EgressClusterInfoSpec, EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import {
  cidrCover,
  compareIps,
  type IntervalSet,
  type Ip,
  ofFamily,
  parseCidrMasking,
  parseSet,
  setOfIps,
} from '../ip/index.ts';
import { compareText } from '../values/hash.ts';
import { type Finding, finding } from './finding.ts';
import type { NodeView } from './view.ts';

/** What was seen in the cluster, as values. */
export interface ClusterFacts {
  readonly nodes: readonly Pick<NodeView, 'name' | 'addresses' | 'podCidrs'>[];
  /** Calico's IPPools; undefined when the cluster does not have the kind. */
  readonly calicoPools: readonly { readonly name: string; readonly cidr: string }[] | undefined;
  /** Addresses of the API servers, which need not be nodes. */
  readonly apiServers: readonly string[];
  /** Service ranges by source, the best first: the ServiceCIDR API, then flags of the control plane. */
  readonly serviceCidrs: readonly { readonly source: string; readonly cidrs: readonly string[] }[];
  /** `feature.egressIgnoreCIDR.custom` of the configuration. */
  readonly custom: readonly string[];
}

type IgnoreSetStatus = Required<
  Pick<
    EgressClusterInfoStatus,
    'podCidrMode' | 'clusterIP' | 'nodeIP' | 'apiServer' | 'podCIDR' | 'extraCidr' | 'egressIgnoreCIDR'
  >
>;

/** The status of EgressClusterInfo without conditions, and what was not found; empty findings mean all was. */
export interface IgnoreSet {
  readonly status: IgnoreSetStatus;
  readonly detected: Finding;
  readonly missing: readonly Finding[];
}

/** Decides what belongs to the cluster. What is turned off is empty, and texts that cannot be read are left out. */
export const ignoreSetOf = (spec: EgressClusterInfoSpec, facts: ClusterFacts): IgnoreSet => {
  const { autoDetect, extraCidr = [] } = spec;
  const missing: Finding[] = [];
  const nodeIps = autoDetect.nodeIP ? facts.nodes : [];
  const apiServer = listsOf(readable(facts.apiServers));
  const services = autoDetect.clusterIP ? serviceRanges(facts, missing) : [];
  const { mode, byName } = podRanges(autoDetect.podCidrMode, facts, missing);
  const status: IgnoreSetStatus = {
    podCidrMode: mode,
    clusterIP: listsOf(readable(services)),
    nodeIP: byNameSorted(nodeIps.map(({ name, addresses }): [string, CidrsByFamily] => [name, ipLists(addresses)])),
    apiServer,
    podCIDR: byNameSorted([...byName].map(([name, cidrs]) => [name, listsOf(readable(cidrs))])),
    extraCidr: [...extraCidr],
    egressIgnoreCIDR: {
      clusterIP: listsOf(readable(services)),
      nodeIP: ipLists(nodeIps.flatMap(({ addresses }) => addresses)),
      apiServer,
      podCIDR: listsOf(readable([...byName.values()].flat())),
      custom: listsOf(readable([...extraCidr, ...facts.custom])),
    },
  };
  const detected = missing[0] ?? finding('RangesDetected', `Pod ranges come from ${mode || 'nowhere, as asked'}.`);
  return { status, detected, missing };
};

const serviceRanges = ({ serviceCidrs }: ClusterFacts, missing: Finding[]): readonly string[] => {
  const found = serviceCidrs.find(({ cidrs }) => cidrs.length > 0);
  if (found === undefined) {
    const asked = serviceCidrs.map(({ source }) => source).join(', ') || 'no source';
    missing.push(finding('ServiceCidrNotFound', `No Service range was found (looked at: ${asked}).`));
  }
  return found?.cidrs ?? [];
};

type PodCidrMode = EgressClusterInfoSpec['autoDetect']['podCidrMode'];
type RangesByName = ReadonlyMap<string, readonly string[]>;

/** `auto` takes Calico where it has pools, else the nodes. */
const podRanges = (
  asked: PodCidrMode,
  { nodes, calicoPools }: ClusterFacts,
  missing: Finding[],
): { mode: PodCidrMode; byName: RangesByName } => {
  const ofCalico: RangesByName = new Map((calicoPools ?? []).map(({ name, cidr }) => [name, [cidr]]));
  const ofNodes: RangesByName = new Map(
    nodes.filter(({ podCidrs }) => podCidrs.length > 0).map(({ name, podCidrs }) => [name, podCidrs]),
  );
  const mode = asked === 'auto' ? (ofCalico.size > 0 ? 'calico' : 'k8s') : asked;
  switch (mode) {
    case '':
      return { mode, byName: new Map() };
    case 'calico':
      if (ofCalico.size === 0)
        missing.push(finding('CalicoNotFound', 'podCidrMode is calico, but there is no IPPool.'));
      return { mode, byName: ofCalico };
    case 'k8s':
      if (ofNodes.size === 0) {
        missing.push(finding('PodCidrNotFound', `None of ${nodes.length} nodes has spec.podCIDRs (mode ${asked}).`));
      }
      return { mode, byName: ofNodes };
    default:
      return mode satisfies never;
  }
};

interface CidrsByFamily {
  readonly ipv4: string[];
  readonly ipv6: string[];
}

// One strange text must not hide the others: each is read by itself.
const readable = (texts: readonly string[]): IntervalSet => {
  const set = parseSet(
    texts.filter((text) => parseSet([text], parseCidrMasking).ok),
    parseCidrMasking,
  );
  return set.ok ? set.value : setOfIps([]);
};

// Addresses and CIDRs, no ranges, as the API promises: whoever reads the status need not know them.
const listsOf = (set: IntervalSet): CidrsByFamily => ({
  ipv4: cidrCover(ofFamily(set, 4)).map((cidr) => cidr.replace(/\/32$/, '')),
  ipv6: cidrCover(ofFamily(set, 6)).map((cidr) => cidr.replace(/\/128$/, '')),
});

// Addresses of nodes are listed one by one, as people look for them; a merged range would hide them.
const ipLists = (ips: readonly Ip[]): CidrsByFamily => {
  const sorted = [...new Set(ips)].toSorted(compareIps);
  return {
    ipv4: sorted.filter((ip) => !ip.includes(':')),
    ipv6: sorted.filter((ip) => ip.includes(':')),
  };
};

const byNameSorted = (entries: readonly (readonly [string, CidrsByFamily])[]): Record<string, CidrsByFamily> =>
  Object.fromEntries(entries.toSorted(([a], [b]) => compareText(a, b)));
