/**
 * One cluster per rule, with the id of the rule as its name: destinations, how connections are spread, and the counts of the
 * rule. All names are resolved through the guarding resolver and nothing else, so an address that Envoy connects to was
 * checked, or is written in the rule itself.
 */
import {
  type HostPattern,
  type HttpServed,
  proxyPorts,
  type ServedRule,
  type TcpServed,
} from '../../core/proxy/served.ts';
import { HEAD_KIB, HEADERS } from './limits.ts';
import { type EnvoyMessage, extension, seconds, typed } from './message.ts';

/** How long a connection attempt may take before the next address is tried. */
const CONNECT_SECONDS = 3;
/** Enough for throughput over long distances, little enough for thousands of slow readers. */
export const BUFFER_BYTES = 256 * 1024;
/** Envoy's own limits per destination (1,024) are for services; here only memory and the size of the pod are. */
const NO_LIMIT = 1_000_000;
/** Names under wildcards that are remembered, since clients invent them; and how long one that nobody asks for any more. */
const MAX_NAMES = 16_384;
const NAME_SECONDS = 20;

/** The cluster of a rule. */
export const clusterOf = (rule: ServedRule): EnvoyMessage =>
  rule.kind === 'tcp' ? tcpCluster(rule) : httpCluster(rule);

const tcpCluster = (rule: TcpServed): EnvoyMessage => ({
  ...base(rule.id),
  ...(rule.to.kind === 'addresses'
    ? { type: 'STATIC', load_assignment: assignment(rule.id, rule.to.ips, rule.destPort) }
    : byName(rule.id, rule.to.name, rule.destPort)),
  ...balancing(rule.algorithm),
});

const httpCluster = (rule: HttpServed): EnvoyMessage => ({
  ...base(rule.id),
  ...httpTarget(rule.id, rule.host, rule.destPort),
  // A server may take all requests of a connection for those of one user (NTLM), and may answer more than it was asked.
  connection_pool_per_downstream_connection: true,
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      {
        explicit_http_config: { http_protocol_options: { enable_trailers: true, allow_custom_methods: true } },
        common_http_protocol_options: {
          idle_timeout: seconds(60),
          max_headers_count: HEADERS,
          max_response_headers_kb: HEAD_KIB,
        },
      },
    ),
  },
});

const httpTarget = (id: string, host: HostPattern, destPort: number): EnvoyMessage => {
  switch (host.kind) {
    case 'exact':
      return byName(id, host.name, destPort);
    case 'address':
      return { type: 'STATIC', load_assignment: assignment(id, [host.ip], destPort) };
    case 'suffix':
      return {
        lb_policy: 'CLUSTER_PROVIDED',
        cluster_type: extension(
          'envoy.clusters.dynamic_forward_proxy',
          'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
          { dns_cache_config: dnsCache, allow_insecure_cluster_options: true },
        ),
      };
  }
};

const base = (name: string): EnvoyMessage => ({
  ...typed('envoy.config.cluster.v3.Cluster'),
  name,
  connect_timeout: seconds(CONNECT_SECONDS),
  per_connection_buffer_limit_bytes: BUFFER_BYTES,
  circuit_breakers: {
    thresholds: [
      {
        max_connections: NO_LIMIT,
        max_pending_requests: NO_LIMIT,
        max_requests: NO_LIMIT,
        max_retries: NO_LIMIT,
      },
    ],
  },
  // Only connections that cannot be made count against an address: what a server answers is not our business.
  outlier_detection: {
    split_external_local_origin_errors: true,
    consecutive_local_origin_failure: 1,
    enforcing_consecutive_local_origin_failure: 100,
    enforcing_consecutive_5xx: 0,
    enforcing_consecutive_gateway_failure: 0,
    enforcing_success_rate: 0,
    enforcing_local_origin_success_rate: 0,
    interval: seconds(1),
    base_ejection_time: seconds(3),
    max_ejection_time: seconds(15),
    max_ejection_percent: 100,
  },
  // When all addresses are thought dead, all are tried.
  common_lb_config: { healthy_panic_threshold: { value: 1 } },
  upstream_connection_options: { tcp_keepalive: { keepalive_time: 300, keepalive_interval: 30, keepalive_probes: 5 } },
});

/** A rule's algorithm; workers take turns on their own. */
const balancing = (algorithm: TcpServed['algorithm']): EnvoyMessage => {
  switch (algorithm) {
    case 'roundrobin':
      return { lb_policy: 'ROUND_ROBIN' };
    case 'least_conn':
      // Two random addresses, which is Envoy's default, would often miss the least busy of three.
      return {
        load_balancing_policy: {
          policies: [
            {
              typed_extension_config: extension(
                'envoy.load_balancing_policies.least_request',
                'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest',
                { selection_method: 'FULL_SCAN' },
              ),
            },
          ],
        },
      };
    case 'hash':
      return { lb_policy: 'RING_HASH', ring_hash_lb_config: { minimum_ring_size: 128 } };
  }
};

/** The resolver outside is asked again when the answer's time is over; connections to older addresses live on. */
const byName = (id: string, name: string, port: number): EnvoyMessage => ({
  cluster_type: extension('envoy.cluster.dns', 'envoy.extensions.clusters.dns.v3.DnsCluster', {
    respect_dns_ttl: true,
    // For names that have no address, and so no time to live.
    dns_refresh_rate: seconds(2),
    dns_failure_refresh_rate: { base_interval: seconds(1), max_interval: seconds(5) },
    dns_lookup_family: 'ALL',
    typed_dns_resolver_config: guardingResolver,
  }),
  load_assignment: assignment(id, [name], port),
  // A name that takes long must not hold up the start of all other rules.
  wait_for_warm_on_init: false,
});

const assignment = (id: string, hosts: readonly string[], port: number): EnvoyMessage => ({
  cluster_name: id,
  endpoints: [
    {
      lb_endpoints: hosts.map((address) => ({
        endpoint: { address: { socket_address: { address, port_value: port } } },
      })),
    },
  ],
});

/** The only resolver that Envoy has: that of the pod is never asked, also not when this one fails. */
export const guardingResolver: EnvoyMessage = extension(
  'envoy.network.dns_resolver.cares',
  'envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
  {
    resolvers: [{ socket_address: { address: '127.0.0.1', port_value: proxyPorts.dns } }],
    use_resolvers_as_fallback: false,
    dns_resolver_options: { no_default_search_domain: true },
    query_timeout_seconds: 5,
    query_tries: 2,
  },
);

/** Names under wildcards are resolved when a client asks for them; all wildcard rules share what is known. */
export const dnsCache: EnvoyMessage = {
  name: 'names',
  dns_lookup_family: 'ALL',
  typed_dns_resolver_config: guardingResolver,
  max_hosts: MAX_NAMES,
  // The guarding resolver shares them among rules, and refuses at once what is too much of one.
  dns_cache_circuit_breaker: { max_pending_requests: NO_LIMIT },
  dns_refresh_rate: seconds(5),
  dns_min_refresh_rate: seconds(1),
  dns_failure_refresh_rate: { base_interval: seconds(1), max_interval: seconds(5) },
  host_ttl: seconds(NAME_SECONDS),
};
