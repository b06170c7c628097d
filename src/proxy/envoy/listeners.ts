/**
 * Listeners: one per TCP rule, one for the HTTP proxy, one for TLS by server name. That of the HTTP proxy never changes: its
 * allow-list is in the routes. In the one for TLS a rule is a filter chain, and Envoy replaces only chains that differ.
 */

import { type HttpServed, proxyPorts, type RuleSet, type ServedRule, type TcpServed } from '../../core/proxy/served.ts';
import { hashText } from '../../core/values/hash.ts';
import { MOST_OPEN } from '../engine/loops.ts';
import { hostText, sniRules } from '../engine/sni-rules.ts';
import { type AccessLogs, accessLogsAt } from './access-log.ts';
import { BUFFER_BYTES, dnsCache } from './clusters.ts';
import { HEAD_KIB, HEADERS } from './limits.ts';
import { type EnvoyMessage, extension, seconds, typed } from './message.ts';
import { DYNAMIC_FORWARD_PROXY, ROUTES } from './routes.ts';
import { markFilter, noProxiesFilter, type PathOf, sourceFilter } from './sources.ts';

/** Names of the two listeners that are not of a rule; ids of rules have slashes. */
export const HTTP = 'http';
export const TLS = 'tls';

/** Addresses of a destination that a connection tries before it is given up. */
const CONNECT_ATTEMPTS = 5;
const TUNNEL_IDLE_SECONDS = 3600;
/** For the head of a request, and for the first message of TLS. */
const HEAD_SECONDS = 10;

/** How the listeners of a proxy find each other and their files. */
export interface ListenerPlaces {
  /** The file with the routes. */
  readonly routesPath: string;
  /** The file that Envoy writes its access log to. */
  readonly accessLogPath: string;
  /** Whether the pod has IPv6; without it, nothing can listen on `::`. */
  readonly hasIpv6: boolean;
  /** Files that say who may use a rule. */
  readonly pathOf: PathOf;
}

/** All listeners of a rule set, by name. */
export const listenersOf = (rules: RuleSet, places: ListenerPlaces): Map<string, EnvoyMessage> => {
  const logs = accessLogsAt(places.accessLogPath);
  return new Map([
    ...rules.rules
      .filter((rule) => rule.kind === 'tcp')
      .map((rule): [string, EnvoyMessage] => [rule.id, tcpListener(rule, places, logs)]),
    [HTTP, httpListener(places, logs)],
    [TLS, tlsListener(sniRules(rules), places, logs)],
  ]);
};

const base = (name: string, port: number, { hasIpv6 }: ListenerPlaces): EnvoyMessage => ({
  ...typed('envoy.config.listener.v3.Listener'),
  name,
  address: {
    socket_address: hasIpv6
      ? { address: '::', port_value: port, ipv4_compat: true }
      : { address: '0.0.0.0', port_value: port },
  },
  per_connection_buffer_limit_bytes: BUFFER_BYTES,
  // All listeners share their counts; those of a rule are at its cluster.
  stat_prefix: 'rules',
});

const tcpListener = (rule: TcpServed, places: ListenerPlaces, logs: AccessLogs): EnvoyMessage => ({
  ...base(rule.id, rule.listenPort, places),
  filter_chains: [
    named(rule.id, {
      filters: [...clientFilters(rule), tcpProxy(rule.id, rule.idleSeconds, logs.tcp, rule.algorithm === 'hash')],
    }),
  ],
});

/** Who may use the rule; and how many at once, where that is anyone: then no source may tell that a connection comes back. */
const clientFilters = ({ id, from }: ServedRule): EnvoyMessage[] => [
  sourceFilter(id),
  ...(from === undefined
    ? [
        extension(
          'envoy.filters.network.connection_limit',
          'envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit',
          { stat_prefix: 'rules', max_connections: MOST_OPEN },
        ),
      ]
    : []),
];

const tcpProxy = (
  cluster: string,
  idleSeconds: number,
  log: readonly EnvoyMessage[],
  isByClient: boolean,
): EnvoyMessage =>
  extension('envoy.filters.network.tcp_proxy', 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', {
    stat_prefix: 'rules',
    cluster,
    idle_timeout: seconds(idleSeconds),
    max_connect_attempts: CONNECT_ATTEMPTS,
    // Time for the address that failed to be left out: a hash would choose it again.
    backoff_options: { base_interval: '0.01s', max_interval: '0.1s' },
    ...(isByClient ? { hash_policy: [{ source_ip: {} }] } : {}),
    access_log: log,
  });

const tlsListener = (rules: readonly HttpServed[], places: ListenerPlaces, logs: AccessLogs): EnvoyMessage => ({
  ...base(TLS, proxyPorts.tls, places),
  listener_filters: [
    extension(
      'envoy.filters.listener.tls_inspector',
      'envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector',
    ),
  ],
  listener_filters_timeout: seconds(HEAD_SECONDS),
  filter_chains: rules.map((rule) =>
    named(rule.id, {
      filter_chain_match: { server_names: [hostText(rule.host)] },
      filters: [
        ...clientFilters(rule),
        ...(rule.host.kind === 'suffix' ? [resolveServerName(rule.destPort)] : []),
        tcpProxy(rule.id, TUNNEL_IDLE_SECONDS, logs.sni, false),
      ],
    }),
  ),
  default_filter_chain: {
    name: 'refused',
    filters: [
      extension('envoy.filters.network.rbac', 'envoy.extensions.filters.network.rbac.v3.RBAC', {
        // No policy allows anything.
        rules: { action: 'ALLOW', policies: {} },
        stat_prefix: 'tls_refused.',
      }),
      tcpProxy('refused', TUNNEL_IDLE_SECONDS, logs.sniRefused, false),
    ],
  },
});

/** Envoy does not tell the version of a chain, so its name tells what is in it. */
const named = (id: string, chain: EnvoyMessage): EnvoyMessage => ({
  name: `${id} ${hashText(JSON.stringify(chain))}`,
  ...chain,
});

/** Names of the chains of a listener, sorted. */
export const chainNames = (listener: EnvoyMessage | undefined): string[] => {
  const chains = Array.isArray(listener?.filter_chains) ? listener.filter_chains : [];
  return chains.map(({ name }: EnvoyMessage) => String(name)).toSorted();
};

const resolveServerName = (port: number): EnvoyMessage =>
  extension(
    'envoy.filters.network.sni_dynamic_forward_proxy',
    'envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig',
    { port_value: port, dns_cache_config: dnsCache },
  );

const httpListener = (places: ListenerPlaces, logs: AccessLogs): EnvoyMessage => ({
  ...base(HTTP, proxyPorts.http, places),
  filter_chains: [
    {
      filters: [
        noProxiesFilter(places.pathOf),
        extension(
          'envoy.filters.network.http_connection_manager',
          'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
          connectionManager(places, logs),
        ),
      ],
    },
  ],
});

const connectionManager = ({ routesPath, pathOf }: ListenerPlaces, logs: AccessLogs): EnvoyMessage => ({
  stat_prefix: 'proxy',
  codec_type: 'HTTP1',
  // A request has its mark, and so its route, only after Envoy has asked whether it may become something else.
  upgrade_configs: [{ upgrade_type: 'CONNECT' }, { upgrade_type: 'websocket' }],
  rds: {
    route_config_name: ROUTES,
    config_source: { path_config_source: { path: routesPath }, resource_api_version: 'V3' },
  },
  access_log: logs.http,
  http_filters: [
    markFilter(pathOf),
    {
      ...extension(DYNAMIC_FORWARD_PROXY, 'envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig', {
        dns_cache_config: dnsCache,
      }),
      // Routes that need it have it.
      disabled: true,
    },
    extension('envoy.filters.http.router', 'envoy.extensions.filters.http.router.v3.Router', {
      suppress_envoy_headers: true,
      // Counts by status that nobody reads: they were a twelfth of what Envoy does for a request, in instructions.
      dynamic_stats: false,
    }),
  ],
  // Smuggling: one length, no odd transfer encodings, and a bad message ends its connection.
  http_protocol_options: {
    allow_chunked_length: false,
    allow_absolute_url: true,
    // Python, pip, nc, socat and openssl ask for tunnels with HTTP/1.0.
    accept_http_10: true,
    allow_custom_methods: true,
    enable_trailers: true,
  },
  // The server says whether it wants the body.
  proxy_100_continue: true,
  strip_trailing_host_dot: true,
  stream_error_on_invalid_http_message: false,
  common_http_protocol_options: {
    idle_timeout: seconds(300),
    max_headers_count: HEADERS,
  },
  max_request_headers_kb: HEAD_KIB,
  request_headers_timeout: seconds(HEAD_SECONDS),
  // Of plain requests; tunnels have their own at their route.
  stream_idle_timeout: seconds(300),
  delayed_close_timeout: seconds(1),
  // No client is trusted with Envoy's own headers, and no server hears of our clients.
  use_remote_address: true,
  skip_xff_append: true,
  internal_address_config: {},
  generate_request_id: false,
  server_header_transformation: 'PASS_THROUGH',
  // Nothing is decided by paths, so they are passed on byte by byte: a change would break signed requests.
  normalize_path: false,
  merge_slashes: false,
  path_with_escaped_slashes_action: 'KEEP_UNCHANGED',
  local_reply_config: {
    mappers: [
      {
        filter: { response_flag_filter: { flags: ['DF', 'UH', 'UF', 'URX'] } },
        body_format_override: {
          text_format_source: {
            inline_string:
              'Sallyport allows %REQ(:AUTHORITY)%, but its name leads to no address that may be reached, or nobody answers there.\n',
          },
          content_type: 'text/plain; charset=utf-8',
        },
      },
    ],
  },
});
