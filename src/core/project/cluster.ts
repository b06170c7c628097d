/** Views of what is one per cluster: the configuration and EgressClusterInfo. */
import type { Config } from '../../api/config.ts';
import { EgressClusterInfoStatus, type RecordedElectorate } from '../../api/egress-cluster-info.ts';
import type { ClusterRanges, Electorate, Settings } from '../cluster/view.ts';
import {
  difference,
  emptySet,
  type IntervalSet,
  nth,
  parseCidrMasking,
  parseSet,
  poolOf,
  setOfIps,
} from '../ip/index.ts';
import { type ApiObject, readStatus } from './api-object.ts';

/** The settings of a configuration; `seed` is any text that stays the same for the cluster, such as its uid. */
export const projectSettings = ({ feature }: Config, seed: string): Settings => ({
  hasIpv4: feature.enableIPv4,
  hasIpv6: feature.enableIPv6,
  tunnelRanges: {
    ipv4: feature.enableIPv4 ? tunnelRange(feature.tunnelIpv4Subnet) : emptySet,
    ipv6: feature.enableIPv6 ? tunnelRange(feature.tunnelIpv6Subnet) : emptySet,
  },
  seed,
});

/** The ranges of an EgressClusterInfo; without one, or without its status, nothing is known. */
export const projectClusterInfo = (object: ApiObject | undefined): ClusterRanges => {
  const ignored = object && readStatus(EgressClusterInfoStatus, object)?.egressIgnoreCIDR;
  return {
    isKnown: ignored !== undefined,
    services: rangesOf(ignored?.clusterIP),
    nodes: rangesOf(ignored?.nodeIP),
    apiServers: rangesOf(ignored?.apiServer),
    pods: rangesOf(ignored?.podCIDR),
    custom: rangesOf(ignored?.custom),
  };
};

/** The electorate that an EgressClusterInfo names; undefined while there is none. */
export const projectElectorate = (object: ApiObject | undefined): Electorate | undefined =>
  electorateOf(object && readStatus(EgressClusterInfoStatus, object)?.electorate);

/** An electorate as the protocol reads it. */
export const electorateOf = (recorded: RecordedElectorate | undefined): Electorate | undefined =>
  recorded && { generation: recorded.generation, voters: recorded.voters, hasApi: recorded.apiVotes };

// The first IPv6 address of a subnet is the anycast address of its routers (RFC 4291 section 2.6.1); poolOf has
// taken the first and the last address of an IPv4 subnet away.
const tunnelRange = (cidr: string): IntervalSet => {
  const range = poolOf([cidr]);
  if (!range.ok) return emptySet;
  const first = nth(range.value, 0n);
  return cidr.includes(':') && first !== undefined ? difference(range.value, setOfIps([first])) : range.value;
};

interface SpecCidrs {
  readonly ipv4?: readonly string[] | undefined;
  readonly ipv6?: readonly string[] | undefined;
}

// One strange text in a status must not hide the others: each is read by itself.
const rangesOf = ({ ipv4 = [], ipv6 = [] }: SpecCidrs = {}): IntervalSet => {
  const readable = [...ipv4, ...ipv6].filter((text) => parseSet([text], parseCidrMasking).ok);
  const set = parseSet(readable, parseCidrMasking);
  return set.ok ? set.value : emptySet;
};
