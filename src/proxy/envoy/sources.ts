/**
 * Who may use a rule, as Envoy is told: filters that are read from files of their own, so that pods come and go without a
 * change of any listener, and connections live on. A client of a port or by server name is looked up when it connects; of
 * the HTTP proxy each request is marked with the groups that its client belongs to, and routes ask for the mark.
 */
import { type Ip, isIpv6 } from '../../core/ip/index.ts';
import type { From } from '../../core/proxy/from.ts';
import type { RuleSet } from '../../core/proxy/served.ts';
import { addressesFrom, groupOf, type Sources } from '../engine/sources.ts';
import { CLIENT, RULE } from './judge.ts';
import { type EnvoyMessage, extension, seconds, typed } from './message.ts';

/** The header that marks a request; what a client sends in it is removed. */
export const MARK = 'x-sallyport-from';
const MARKS = 'marks';
const NO_PROXIES = 'no-proxies';
/** The cluster of the judge. */
const JUDGE = 'judge';
const RBAC = 'envoy.extensions.filters.network.rbac.v3.RBAC';
const IP_TAGGING = 'envoy.extensions.filters.http.ip_tagging.v3.IPTagging';

/** Path of the file that says who is in a group. */
export type PathOf = (name: string) => string;

/** Asks the judge whether the client of a connection may use the rule, before a server is connected to. */
export const sourceFilter = (rule: string): EnvoyMessage =>
  extension('envoy.filters.network.ratelimit', 'envoy.extensions.filters.network.ratelimit.v3.RateLimit', {
    stat_prefix: 'from',
    domain: 'sallyport',
    descriptors: [
      {
        entries: [
          { key: CLIENT, value: '%DOWNSTREAM_REMOTE_ADDRESS%' },
          { key: RULE, value: rule },
        ],
      },
    ],
    timeout: seconds(2),
    failure_mode_deny: true,
    rate_limit_service: {
      grpc_service: { envoy_grpc: { cluster_name: JUDGE } },
      transport_api_version: 'V3',
    },
  });

/** The judge, as a cluster. */
export const judgeCluster = (path: string): EnvoyMessage => ({
  name: JUDGE,
  type: 'STATIC',
  connect_timeout: seconds(1),
  load_assignment: {
    cluster_name: JUDGE,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path } } } }] }],
  },
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      { explicit_http_config: { http2_protocol_options: {} } },
    ),
  },
});

/** Keeps proxies off the HTTP proxy: a loop. */
export const noProxiesFilter = (pathOf: PathOf): EnvoyMessage => discovered(NO_PROXIES, RBAC, pathOf);

/** Marks requests by the groups of their clients. */
export const markFilter = (pathOf: PathOf): EnvoyMessage => discovered(MARKS, IP_TAGGING, pathOf);

/** What a route asks for, so that it is for requests of these clients only. */
export const markedBy = (from: From): EnvoyMessage[] =>
  from === undefined ? [] : [{ name: MARK, string_match: { contains: groupOf(from) } }];

const discovered = (name: string, type: string, pathOf: PathOf): EnvoyMessage => ({
  name,
  config_discovery: {
    config_source: { path_config_source: { path: pathOf(name) }, resource_api_version: 'V3' },
    type_urls: [`type.googleapis.com/${type}`],
  },
});

/** Name -> the filter that is to be in its file. */
export const filtersOf = ({ rules }: Pick<RuleSet, 'rules'>, sources: Sources): Map<string, EnvoyMessage> => {
  const groups = new Map(rules.flatMap(({ kind, from }) => (kind === 'http' && from ? [[groupOf(from), from]] : [])));
  const known = [...groups].map(([group, from]) => ({ group, ips: addressesFrom(sources, from) }));
  return new Map([
    [NO_PROXIES, named(NO_PROXIES, refusing(sources.proxies))],
    [MARKS, named(MARKS, marking(known))],
  ]);
};

const named = (name: string, filter: EnvoyMessage): EnvoyMessage => ({
  ...typed('envoy.config.core.v3.TypedExtensionConfig'),
  name,
  typed_config: filter,
});

const refusing = (ips: readonly Ip[]): EnvoyMessage =>
  typed(RBAC, {
    stat_prefix: 'from.',
    rules: {
      action: 'DENY',
      policies:
        ips.length === 0
          ? {}
          : {
              proxies: {
                permissions: [{ any: true }],
                principals: ips.map((ip) => ({ direct_remote_ip: rangeOf(ip) })),
              },
            },
    },
  });

const marking = (groups: readonly { readonly group: string; readonly ips: readonly Ip[] }[]): EnvoyMessage =>
  typed(IP_TAGGING, {
    request_type: 'BOTH',
    ip_tags: [
      // There must be one, and nobody has this address.
      { ip_tag_name: 'nobody', ip_list: [{ address_prefix: '255.255.255.255', prefix_len: 32 }] },
      ...groups
        .filter(({ ips }) => ips.length > 0)
        .map(({ group, ips }) => ({ ip_tag_name: group, ip_list: ips.map(rangeOf) })),
    ],
    ip_tag_header: { header: MARK, action: 'SANITIZE' },
  });

const rangeOf = (ip: Ip): EnvoyMessage => ({ address_prefix: ip, prefix_len: isIpv6(ip) ? 128 : 32 });
