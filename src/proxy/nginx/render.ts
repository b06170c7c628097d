/** From a rule set to the configuration of nginx. Pure, and the same text for the same rules: a new text is a new generation. */
import { hash } from 'node:crypto';
import { proxyPorts, type RuleSet, type ServedRule, type TcpServed } from '../../core/proxy/served.ts';
import { clientNameOf } from '../dns/client-name.ts';
import { MOST_OPEN } from '../engine/loops.ts';
import { keyOf } from '../engine/rule-key.ts';
import { hostText, sniRules } from '../engine/sni-rules.ts';
import { fromMap } from './from.ts';
import { streamWords } from './log-format.ts';
import { httpBlock } from './render-http.ts';
import { hostOf, path } from './words.ts';

/** What follows from the pod and the program, not from rules. */
export interface NginxSettings {
  /** The folder of the engine. */
  readonly folder: string;
  /** The stream module, if the program was built to load it. */
  readonly streamModule: string | undefined;
  readonly workers: number;
  /** Whether sockets can be made for both families. */
  readonly hasIpv6: boolean;
  /** Whether the program starts as root, as in tests: its workers then stay root, so that they can open their logs again. */
  readonly isRoot: boolean;
  /** How long connections of an older generation may go on after a change. */
  readonly drainSeconds: number;
  /** Whether every answer ends its connection, because the process will stop. */
  readonly isRetiring?: boolean;
}

/** A configuration and the word with which the running nginx shows that it has it. */
export interface NginxConfig {
  readonly generation: string;
  readonly text: string;
}

/** Socket on which every generation tells its name. */
export const stateSocket = (folder: string): string => `${folder}/state.sock`;
/** Log of failures, also those of a reload. */
export const errorLog = (folder: string): string => `${folder}/error.log`;
/** Logs of connections and requests, for counting. */
export const accessLogs = (folder: string): string[] => ['http', 'stream'].map((kind) => `${folder}/${kind}.log`);

const resolver = `127.0.0.1:${proxyPorts.dns}`;
/** A server name that can be a host; what else a client sends is nobody. */
const SERVER_NAME = String.raw`^(?<strict_name>(?:[a-z0-9_-]{1,63}\.)+[a-z0-9_-]{1,63})$`;

/** Stands for the name of the generation while that is made from the text itself; no name of a rule can hold it. */
const PLACE = '%generation%';

/** The configuration that serves the rules. Names and ports were checked before. */
export const render = (rules: RuleSet, settings: NginxSettings): NginxConfig => {
  const body = [
    ...mainLines(settings),
    ...httpBlock(rules, {
      folder: settings.folder,
      resolver,
      listen: httpListen(settings),
      refusalPath: `/.sallyport-refusal-${PLACE}`,
      isRetiring: settings.isRetiring ?? false,
    }),
    ...streamBlock(rules, settings, PLACE),
    '',
  ].join('\n');
  const generation = hash('sha256', body).slice(0, 20);
  return { generation, text: body.replaceAll(PLACE, generation) };
};

/** The configuration before the first rules: it listens nowhere and only tells its name. */
export const renderEmpty = (settings: NginxSettings): NginxConfig => {
  const stream = ['stream {', ...stateServer(settings, 'empty'), '}', ''];
  return { generation: 'empty', text: [...mainLines(settings), ...stream].join('\n') };
};

const mainLines = ({ folder, streamModule, workers, isRoot, drainSeconds }: NginxSettings): string[] => [
  ...(streamModule === undefined ? [] : [`load_module ${path(streamModule)};`]),
  'daemon off;',
  ...(isRoot ? ['user root;'] : []),
  `pid ${path(folder)}/nginx.pid;`,
  // What concerns single connections is in the access log.
  `error_log ${errorLog(folder)} crit;`,
  `worker_processes ${workers};`,
  `worker_shutdown_timeout ${drainSeconds}s;`,
  'pcre_jit on;',
  'events {',
  '  worker_connections 16384;',
  '}',
];

const streamBlock = (rules: RuleSet, settings: NginxSettings, generation: string): string[] => {
  const tcp = rules.rules.filter((rule) => rule.kind === 'tcp');
  const tls = sniRules(rules);
  const peers = tcp.filter(isByUpstream).map(addressCount);
  const log = path(`${settings.folder}/stream.log`);
  // Half a kilobyte would do for a peer; the rest is room for the upstreams themselves.
  const zoneKilobytes = 256 + 4 * peers.reduce((sum, count) => sum + count, 0);
  return [
    'stream {',
    '  map_hash_bucket_size 1024;',
    '  map_hash_max_size 65536;',
    '  variables_hash_max_size 2048;',
    // The variable of the format exists only where a rule sets it.
    ...(tcp.length === 0 ? [] : [`  log_format tcp escape=json '${streamWords('tcp', '$rule')}';`]),
    `  log_format sni escape=json '${streamWords('sni', '$sni_rule')}';`,
    '  map $ssl_preread_server_name $sni {',
    '    default "";',
    `    "~*${SERVER_NAME}" $strict_name;`,
    '  }',
    '  map $sni $sni_rule {',
    '    hostnames;',
    '    default "";',
    ...tls.map(({ host, id }) => `    "${hostText(host)}" ${keyOf(id)};`),
    '  }',
    ...fromMap,
    '  map $sni_rule $sni_target {',
    `    default unix:${path(settings.folder)}/nobody.sock;`,
    ...tls.map(({ host, id, destPort }) => {
      const name = clientNameOf('$from', keyOf(id), host.kind === 'suffix' ? '$sni' : undefined);
      return `    ${keyOf(id)} "${name}:${destPort}";`;
    }),
    '  }',
    `  resolver ${resolver};`,
    '  resolver_timeout 6s;',
    '  proxy_connect_timeout 3s;',
    '  proxy_next_upstream_tries 4;',
    '  proxy_next_upstream_timeout 12s;',
    '  proxy_socket_keepalive on;',
    // Who has ended its own side may still be waiting for the answer.
    '  proxy_half_close on;',
    '  proxy_buffer_size 32k;',
    '  preread_timeout 10s;',
    // Every rule has a port of its own.
    '  limit_conn_zone $server_port zone=open:64k;',
    '  limit_conn_log_level info;',
    ...stateServer(settings, generation),
    '  # Where TLS goes that no rule allows.',
    '  server {',
    `    listen unix:${path(settings.folder)}/nobody.sock;`,
    '    return "";',
    '  }',
    '  server {',
    `    listen ${listen(proxyPorts.tls, settings)};`,
    '    ssl_preread on;',
    '    proxy_pass $sni_target;',
    '    proxy_timeout 3600s;',
    // Before the server name is read nobody knows the rule, so the rules share it.
    ...(tls.some(isForAnyone) ? [limitOf(MOST_OPEN)] : []),
    `    access_log ${log} sni buffer=32k flush=100ms;`,
    '  }',
    ...(peers.length === 0 ? [] : [`  upstream shared { zone shared ${zoneKilobytes}k; server 127.0.0.1:9 down; }`]),
    ...tcp.flatMap((rule) => tcpLines(rule, settings, log)),
    '}',
  ];
};

const stateServer = ({ folder }: NginxSettings, generation: string): string[] => [
  '  server {',
  `    listen unix:${path(stateSocket(folder))};`,
  `    return ${generation};`,
  '  }',
];

const tcpLines = (rule: TcpServed, settings: NginxSettings, log: string): string[] => {
  const key = keyOf(rule.id);
  return [
    ...upstream(rule, key),
    '  server {',
    `    listen ${listen(rule.listenPort, settings)};`,
    `    set $rule ${key};`,
    ...passLines(rule, key),
    `    proxy_timeout ${rule.idleSeconds}s;`,
    ...(isForAnyone(rule) ? [limitOf(MOST_OPEN)] : []),
    `    access_log ${log} tcp buffer=32k flush=100ms;`,
    '  }',
  ];
};

/** Then no source may tell that a connection comes back, so there is a bound. */
const isForAnyone = ({ from }: ServedRule): boolean => from === undefined;

const limitOf = (most: number): string => `    limit_conn open ${most};`;

/** True when nginx itself chooses among several addresses; then nobody is asked for each connection. */
const isByUpstream = (rule: TcpServed): boolean =>
  rule.from === undefined && rule.to.kind === 'addresses' && rule.to.ips.length > 1;

const upstream = (rule: TcpServed, key: string): string[] => {
  const { to, algorithm, destPort } = rule;
  if (to.kind === 'domain' || !isByUpstream(rule)) return [];
  const spread = { roundrobin: [], least_conn: ['    least_conn;'], hash: ['    hash $remote_addr consistent;'] };
  return [
    `  upstream ${key} {`,
    // Workers share what they know of the addresses: whose turn it is, who is busy, who is dead.
    '    zone shared;',
    ...spread[algorithm],
    ...to.ips.map((ip) => `    server ${hostOf(ip)}:${destPort} max_fails=1 fail_timeout=5s;`),
    '  }',
  ];
};

const passLines = (rule: TcpServed, key: string): string[] =>
  isByUpstream(rule)
    ? [`    proxy_pass ${key};`]
    : // A variable makes nginx ask the resolver for each connection, within the TTL; a plain name would be resolved once.
      [`    set $target "${clientNameOf('$from', key)}:${rule.destPort}";`, '    proxy_pass $target;'];

const SOCKET_OPTIONS = 'backlog=4096 so_keepalive=on';

const listen = (port: number, { hasIpv6 }: NginxSettings): string =>
  `${hasIpv6 ? '[::]:' : ''}${port}${hasIpv6 ? ' ipv6only=off' : ''} ${SOCKET_OPTIONS}`;

const httpListen = ({ hasIpv6 }: NginxSettings): { readonly at: string; readonly options: string }[] => [
  { at: `${proxyPorts.http}`, options: SOCKET_OPTIONS },
  ...(hasIpv6 ? [{ at: `[::]:${proxyPorts.http}`, options: `ipv6only=on ${SOCKET_OPTIONS}` }] : []),
];

const addressCount = ({ to }: TcpServed): number => (to.kind === 'addresses' ? to.ips.length : 0);
