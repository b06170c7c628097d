/** What Envoy is started with. It names the files where all the rest is found, so Envoy comes back with its rules. */
import { guardingResolver } from './clusters.ts';
import { type EnvoyMessage, extension } from './message.ts';
import { judgeCluster } from './sources.ts';

/** Files of one Envoy. */
export interface EnvoyFiles {
  readonly bootstrap: string;
  readonly clusters: string;
  readonly listeners: string;
  readonly routes: string;
  readonly accessLog: string;
  /** Socket on which connections are judged. */
  readonly judge: string;
  /** Socket of the administration: a file, so that nobody reaches it over the network. */
  readonly admin: string;
}

/** Counts that are kept, by the end of their name. All others, thousands per rule, cost memory and are never looked at. */
export const counts = {
  actives: 'upstream_rq_active',
  connections: 'upstream_rq_total',
  bytesSent: 'upstream_cx_tx_bytes_total',
  bytesReceived: 'upstream_cx_rx_bytes_total',
} as const;

/** Connections beyond the bound of a rule that is open to anyone; they leave no line. */
export const LIMITED = 'connection_limit.rules.limited_connections';

/** How many addresses a destination has. Until there is one, Envoy answers 503. */
export const ADDRESSES = 'membership_total';

const MAX_CONNECTIONS = 100_000;
const MAX_PATTERN = 1_000;

/** The bootstrap of an Envoy. */
export const bootstrapOf = (files: EnvoyFiles): EnvoyMessage => ({
  node: { id: 'sallyport-proxy', cluster: 'sallyport' },
  admin: { address: { pipe: { path: files.admin, mode: 0o600 } } },
  dynamic_resources: { cds_config: fromFile(files.clusters), lds_config: fromFile(files.listeners) },
  static_resources: { clusters: [judgeCluster(files.judge)] },
  typed_dns_resolver_config: guardingResolver,
  layered_runtime: {
    layers: [
      {
        name: 'sallyport',
        // Patterns are ours; the one that counts turns is longer than the default of 100 instructions.
        static_layer: { re2: { max_program_size: { error_level: MAX_PATTERN, warn_level: MAX_PATTERN } } },
      },
    ],
  },
  stats_config: {
    stats_matcher: {
      inclusion_list: {
        patterns: [
          ...[...Object.values(counts), ADDRESSES].map((suffix) => ({ suffix: `.${suffix}` })),
          { prefix: 'http.proxy.' },
          { prefix: 'tls_refused.' },
          { prefix: 'listener.rules.' },
          { prefix: 'listener_manager.' },
          { prefix: 'cluster_manager.' },
          { prefix: 'server.' },
          { exact: LIMITED },
        ],
      },
    },
  },
  overload_manager: {
    resource_monitors: [
      extension(
        'envoy.resource_monitors.global_downstream_max_connections',
        'envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
        { max_active_downstream_connections: MAX_CONNECTIONS },
      ),
    ],
  },
});

const fromFile = (path: string): EnvoyMessage => ({ path_config_source: { path }, resource_api_version: 'V3' });
