/**
 * Bare engines: the same programs with configuration as one would write it by hand for one TCP port and one HTTP host; what is
 * for another host is refused. They log each request, with what a line of ours tells too but for the rule, as JSON, to a file that
 * nobody reads: a reader of a pipe would take its share of the two cores from the bare program. nginx keeps no connection to
 * the server in either, because it would lend it to any client (ADR 0038).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { raiseShare } from './first.ts';
import { places } from './places.ts';

/** Ports of the bare engines; those of ours are what they are. */
export const barePorts = { tcp: 4201, http: 4280 } as const;

/**
 * Workers of nginx under load, the bare one's and ours. With two of them it is luck how many connections each gets: one may have all and
 * the other none, and the rate follows that more than anything else. One has them all, and the load has the other core.
 */
export const nginxWorkers = 1;

const type = (name: string) => `type.googleapis.com/envoy.extensions.${name}`;

const fileLog = (path: string) => [
  {
    name: 'file',
    typed_config: {
      '@type': type('access_loggers.file.v3.FileAccessLog'),
      path,
      log_format: {
        json_format: {
          time: '%START_TIME%',
          client: '%DOWNSTREAM_REMOTE_ADDRESS%',
          host: '%REQ(:AUTHORITY)%',
          method: '%REQ(:METHOD)%',
          status: '%RESPONSE_CODE%',
          flags: '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%',
          cluster: '%UPSTREAM_CLUSTER%',
          upstream: '%UPSTREAM_HOST%',
          sent: '%BYTES_SENT%',
          received: '%BYTES_RECEIVED%',
          ms: '%DURATION%',
        },
      },
    },
  },
];

const cluster = (name: string, port: number) => ({
  name,
  type: 'STATIC',
  connect_timeout: '3s',
  load_assignment: {
    cluster_name: name,
    endpoints: [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: places.origin, port_value: port } } } }] },
    ],
  },
});

const listener = (name: string, port: number, filterType: string, config: object) => ({
  name,
  address: { socket_address: { address: '0.0.0.0', port_value: port } },
  filter_chains: [{ filters: [{ name, typed_config: { '@type': type(filterType), ...config } }] }],
});

const envoyConfig = (logPath: string) => ({
  static_resources: {
    clusters: [cluster('database', places.iperfPort), cluster('web', 80)],
    listeners: [
      listener('database', barePorts.tcp, 'filters.network.tcp_proxy.v3.TcpProxy', {
        stat_prefix: 'database',
        cluster: 'database',
        access_log: fileLog(logPath),
      }),
      listener('web', barePorts.http, 'filters.network.http_connection_manager.v3.HttpConnectionManager', {
        stat_prefix: 'web',
        access_log: fileLog(logPath),
        route_config: {
          virtual_hosts: [
            { name: 'web', domains: [places.host], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] },
            { name: 'others', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 403 } }] },
          ],
        },
        http_filters: [{ name: 'router', typed_config: { '@type': type('filters.http.router.v3.Router') } }],
      }),
    ],
  },
});

const nginxLine =
  '{"time":"$time_iso8601","client":"$remote_addr:$remote_port","host":"$host","method":"$request_method","status":$status,' +
  '"upstream":"$upstream_addr","sent":"$upstream_bytes_sent","received":"$upstream_bytes_received","seconds":$request_time}';

const nginxConfig = `
daemon off;
worker_processes ${nginxWorkers};
pid nginx.pid;
error_log stderr crit;
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events { worker_connections 8192; }
stream {
  log_format line '$time_iso8601 $remote_addr $upstream_addr $bytes_sent $bytes_received $session_time';
  access_log access.log line;
  server { listen ${barePorts.tcp}; proxy_pass ${places.origin}:${places.iperfPort}; }
}
http {
  log_format line escape=json '${nginxLine}';
  access_log access.log line;
  server {
    listen ${barePorts.http} default_server;
    return 403;
  }
  server {
    listen ${barePorts.http};
    server_name ${places.host};
    location / {
      proxy_pass http://${places.origin}:80;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
    }
  }
}
`;

/** Starts a bare engine. */
export const startBare = (engine: 'envoy' | 'nginx', program: string, folder: string): ChildProcess => {
  const own = join(folder, `bare-${engine}`);
  mkdirSync(join(own, 'logs'), { recursive: true });
  if (engine === 'envoy') {
    const path = join(own, 'envoy.json');
    writeFileSync(path, JSON.stringify(envoyConfig(join(own, 'logs', 'access.log'))));
    const concurrency = String(availableParallelism());
    return start(program, ['-c', path, '--disable-hot-restart', '--concurrency', concurrency, '--log-level', 'error']);
  }
  const path = join(own, 'nginx.conf');
  writeFileSync(path, nginxConfig);
  // As our engine starts its own.
  return start(program, ['-p', own, '-c', path], true);
};

/** The web server that stands for the outside: an nginx that answers from memory. */
export const startOrigin = (program: string, folder: string): ChildProcess => {
  const own = join(folder, 'origin');
  mkdirSync(join(own, 'logs'), { recursive: true });
  const path = join(own, 'nginx.conf');
  writeFileSync(
    path,
    `daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
     events { worker_connections 8192; }
     http { access_log off; keepalive_requests 1000000;
       server { listen ${places.origin}:80; location / { return 200 "ok\\n"; } } }`,
  );
  return start(program, ['-p', own, '-c', path]);
};

const start = (program: string, args: readonly string[], hasOwnSession = false): ChildProcess => {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'], detached: hasOwnSession });
  if (hasOwnSession && child.pid !== undefined) raiseShare(child.pid);
  return child;
};
