/** The status that EgressClusterInfo should show: the ignore set of core, and a condition that says what was found where. Pure. */
import type { EgressClusterInfoSpec, EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import type { Finding } from '../../core/cluster/finding.ts';
import { type ClusterFacts, type IgnoreSet, ignoreSetOf } from '../../core/cluster/ignore-set.ts';
import { conditionsOf } from '../../core/status/conditions.ts';
import { compareText } from '../../core/values/hash.ts';
import type { StatusOwnership } from '../../runtime/kube/owned-status.ts';

/** Everything that the status follows from. */
export interface StatusInput {
  readonly spec: EgressClusterInfoSpec;
  /** What else people should know, as sentences: entries that cannot be read, sources that may not be. */
  readonly remarks: readonly string[];
  readonly facts: ClusterFacts;
  readonly generation: number;
  /** The status that is shown now. */
  readonly before: EgressClusterInfoStatus | undefined;
  readonly now: Date;
}

/** The whole status is ours. */
export const ownership: StatusOwnership<EgressClusterInfoStatus> = {
  fieldsOf: ({ podCidrMode, clusterIP, nodeIP, apiServer, podCIDR, extraCidr, egressIgnoreCIDR }) => ({
    podCidrMode,
    clusterIP,
    nodeIP,
    apiServer,
    podCIDR,
    extraCidr,
    egressIgnoreCIDR,
  }),
  conditionTypes: ['Detected'],
};

/** The status to show. */
export const statusOf = ({ spec, remarks, facts, generation, before, now }: StatusInput): EgressClusterInfoStatus => {
  const ignoreSet = ignoreSetOf(spec, facts);
  const { nodeIP, podCIDR, ...rest } = ignoreSet.status;
  const Detected = detectedOf(spec, facts, ignoreSet, remarks);
  return {
    ...rest,
    // An empty map takes its last entry away as `null`, which the API server then refuses (1.36); absence does not.
    ...(isEmpty(nodeIP) ? {} : { nodeIP }),
    ...(isEmpty(podCIDR) ? {} : { podCIDR }),
    observedGeneration: generation,
    conditions: conditionsOf({ Detected }, generation, before?.conditions, now),
  };
};

const isEmpty = (map: object | undefined): boolean => Object.keys(map ?? {}).length === 0;

/** What is missing first, as that is what somebody has to act on; then what was found where. */
const detectedOf = (
  spec: EgressClusterInfoSpec,
  facts: ClusterFacts,
  { detected, missing, status }: IgnoreSet,
  remarks: readonly string[],
): Finding => {
  const sentences = [
    ...missing.map(({ sentence }) => sentence),
    ...remarks,
    ...podSentence(status),
    ...serviceSentence(spec, facts),
    ...(spec.autoDetect.nodeIP ? [`Node addresses: of ${nodes(facts.nodes.length)}.`] : []),
    ...(facts.apiServers.length > 0 ? [`API server: ${facts.apiServers.toSorted(compareText).join(', ')}.`] : []),
  ];
  const nothing = 'Nothing is to be detected.';
  return { reason: detected.reason, sentence: sentences.length === 0 ? nothing : sentences.join(' ') };
};

const podSentence = ({ podCidrMode, podCIDR }: IgnoreSet['status']): string[] => {
  const count = Object.keys(podCIDR ?? {}).length;
  if (count === 0) return [];
  const pools = count === 1 ? 'one IPPool' : `${count} IPPools`;
  return [`Pod ranges: of ${podCidrMode === 'calico' ? `${pools} of Calico` : nodes(count)}.`];
};

const serviceSentence = ({ autoDetect }: EgressClusterInfoSpec, { serviceCidrs }: ClusterFacts): string[] => {
  const found = serviceCidrs.find(({ cidrs }) => cidrs.length > 0);
  if (!autoDetect.clusterIP || found === undefined) return [];
  return [`Service ranges: from ${found.source}.`];
};

const nodes = (count: number): string => (count === 1 ? 'one node' : `${count} nodes`);
