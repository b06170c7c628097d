/**
 * The http block: plain requests, in absolute form or led here by DNS. One value decides: the authority of the URL, or the
 * Host header when the URL has none; it is read strictly, looked up whole with its port, and what it leads to is written
 * here by us, never taken from a header. The first hosts have a server each (render-hosts.ts); the server here is for all
 * others, and for what no rule allows. A connection to a server outside carries one request: nginx would lend it to any client.
 */
import type { HttpServed, RuleSet } from '../../core/proxy/served.ts';
import { clientNameOf } from '../dns/client-name.ts';
import { HOP, HOP_HEADER, loopText, MOST_HOPS } from '../engine/loops.ts';
import { keyOf } from '../engine/rule-key.ts';
import { fromMap } from './from.ts';
import { httpWords } from './log-format.ts';
import { authorities, hostMaps, hostServers, ownHosts } from './render-hosts.ts';
import { path, quoted } from './words.ts';

const PORT = '(?::[1-9][0-9]{0,4})?';
const NAME = String.raw`(?:(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}|\[[0-9a-f:.]+\])`;

/** What the block needs to know besides the rules. */
export interface HttpSettings {
  readonly folder: string;
  /** `address:port` of the guarding resolver. */
  readonly resolver: string;
  /** Addresses and ports to listen on: each family has its own, so that an IPv4 client is seen as one. */
  readonly listen: readonly { readonly at: string; readonly options: string }[];
  /** A path that no client asks for: nginx shows refusals of its own through it. */
  readonly refusalPath: string;
  /** Whether every answer ends its connection. */
  readonly isRetiring: boolean;
}

/** The lines of the block. */
export const httpBlock = ({ name, rules }: RuleSet, settings: HttpSettings): string[] => {
  const plain = rules.filter((rule) => rule.kind === 'http').filter(({ isTls }) => !isTls);
  const own = ownHosts(plain);
  const accessLog = (format: string): string =>
    `access_log ${path(`${settings.folder}/http.log`)} ${format} buffer=32k flush=100ms;`;
  const refuse = [`        ${accessLog('told')}`, `        return 403 ${quoted(refusalText(name)).slice(0, -1)}\\n";`];
  const refuseLoop = [`        ${accessLog('told')}`, `        return 508 ${quoted(loopText(name)).slice(0, -1)}\\n";`];
  const refusals = [
    `    location = ${settings.refusalPath} {`,
    '      internal;',
    '      return 200 "$said\\n";',
    '    }',
  ];
  return [
    'http {',
    '  map_hash_bucket_size 1024;',
    '  map_hash_max_size 65536;',
    '  server_names_hash_bucket_size 1024;',
    '  server_names_hash_max_size 65536;',
    '  variables_hash_max_size 2048;',
    `  log_format told escape=json '${httpWords}';`,
    `  ${accessLog('told')}`,
    // Nothing is written there, but nginx makes the folders at its start, and those of its package are not ours.
    ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `  ${kind}_temp_path ${path(`${settings.folder}/temporary`)}-${kind};`,
    ),
    '  # What was asked for: the Host of a path, or the authority of an http:// URL that says the same as Host. The rest of what',
    '  # a request may name is nobody.',
    '  map "$http_host $request" $authority {',
    '    default "";',
    String.raw`    "~*^(?<told_name>${NAME})\.?(?<told_port>${PORT}) [a-z]+ /" "$told_name$told_port";`,
    String.raw`    "~*^(?<one_name>${NAME})\.?(?<one_port>${PORT})(?::80)? [a-z]+ http://(?P=one_name)\.?(?<same_port>(?P=one_port)(?::80)?)[/?#\s]" "$one_name$same_port";`,
    '    # HTTP/1.0 has no Host; nginx itself refuses a later version without it.',
    String.raw`    "~*^ [a-z]+ http://(?<only_name>${NAME})\.?(?<only_port>${PORT})[/?#\s]" "$only_name$only_port";`,
    '  }',
    '  map $authority $rule {',
    '    hostnames;',
    '    default "";',
    ...plain.flatMap((rule) => authorities(rule).map((authority) => `    "${authority}" ${keyOf(rule.id)};`)),
    '  }',
    ...fromMap,
    '  map $rule $target {',
    '    default "";',
    ...plain.map((rule) => `    ${keyOf(rule.id)} "${target(rule)}";`),
    '  }',
    '  # WebSocket is the one protocol that a connection may change to.',
    '  map $http_upgrade $upgrade {',
    '    default "";',
    '    "~*^websocket$" websocket;',
    '  }',
    '  map $upgrade $ending {',
    '    default close;',
    '    websocket upgrade;',
    '  }',
    '  # How often the request has come through proxies of ours: for the next turn, and whether it was too often.',
    `  map ${HOP_VARIABLE} $turns {`,
    `    default "${HOP_VARIABLE}, ${HOP}";`,
    `    "" ${HOP};`,
    '  }',
    `  map ${HOP_VARIABLE} $is_loop {`,
    '    default "";',
    `    "~*^(?>.*?${HOP}){${MOST_HOPS}}" 1;`,
    '  }',
    '  map $http_host $sent_host {',
    '    default $http_host;',
    '    "" $named;',
    '  }',
    ...hostMaps(own),
    '  # For the log: of what has no rule, what the request line says.',
    '  map $request $first_word {',
    '    default "";',
    '    "~^(?<word>[A-Z]{1,32}) " $word;',
    '  }',
    '  map $request $first_host {',
    '    default "";',
    String.raw`    "~*^[a-z]+ http://(?<url_authority>[^/?#\s]*)" $url_authority;`,
    '    "~*^[a-z]+ /" $http_host;',
    String.raw`    "~^CONNECT (?<tunnel>\S+)" $tunnel;`,
    '  }',
    '  map $rule $asked_method {',
    '    default $request_method;',
    '    "" $first_word;',
    '  }',
    '  map $rule $shown {',
    '    default $authority;',
    '    "" $first_host;',
    '  }',
    '  map $first_word $unread {',
    `    default ${quoted(`Sallyport cannot read this request, so the proxy ${name} does not let it through.`)};`,
    `    CONNECT ${quoted(tunnelText(name))};`,
    '  }',
    '  map $status $said {',
    '    default $unread;',
    ...AWAY.map((status) => `    ${status} ${quoted(awayText(name))};`),
    '  }',
    `  resolver ${settings.resolver};`,
    ...COMMON.map((line) => `  ${line}`),
    ...(settings.isRetiring ? ['  keepalive_timeout 0;'] : []),
    `  error_page 400 405 408 413 414 494 501 505 ${AWAY.join(' ')} ${settings.refusalPath};`,
    '  server {',
    ...settings.listen.map(({ at, options }) => `    listen ${at} default_server ${options};`),
    ...refusals,
    '    location / {',
    '      if ($rule = "") {',
    ...refuse,
    '      }',
    '      if ($is_loop) {',
    ...refuseLoop,
    '      }',
    '      proxy_pass http://$target$request_uri;',
    '      proxy_set_header Host $authority;',
    '      proxy_set_header Upgrade $upgrade;',
    '      proxy_set_header Connection $ending;',
    ...FOR_PROXIES.map((line) => `      ${line}`),
    '    }',
    '  }',
    ...hostServers(own, { accessLog, listen: settings.listen.map(({ at }) => at), refusals, refuse, refuseLoop }),
    '}',
  ];
};

const HOP_VARIABLE = `$http_${HOP_HEADER.replaceAll('-', '_')}`;

/** Statuses of nginx when a server outside cannot be reached. */
const AWAY = [500, 502, 504];

/** Headers that are for proxies alone. */
const FOR_PROXIES = [
  'proxy_set_header Proxy-Connection "";',
  'proxy_set_header Proxy-Authorization "";',
  'proxy_set_header CDN-Loop $turns;',
];

/** What holds for all servers. Headers that are set hold where no others are. */
const COMMON = [
  'resolver_timeout 6s;',
  'server_tokens off;',
  'merge_slashes off;',
  'underscores_in_headers on;',
  'default_type "text/plain; charset=utf-8";',
  'types { }',
  'client_header_timeout 10s;',
  'client_body_timeout 60s;',
  'client_max_body_size 0;',
  // All headers of a request together: nginx does not count them, so their room is what bounds them.
  'client_header_buffer_size 2k;',
  'large_client_header_buffers 4 16k;',
  'keepalive_requests 100000;',
  'lingering_timeout 2s;',
  'reset_timedout_connection on;',
  'proxy_http_version 1.1;',
  'proxy_set_header Host $sent_host;',
  'proxy_set_header Upgrade $upgrade;',
  'proxy_set_header Connection $ending;',
  ...FOR_PROXIES,
  'proxy_pass_header Date;',
  'proxy_pass_header Server;',
  '# A server outside does not steer this proxy.',
  'proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;',
  'proxy_redirect off;',
  'proxy_buffering off;',
  'proxy_request_buffering off;',
  // The head of an answer has to fit into it.
  'proxy_buffer_size 64k;',
  'proxy_buffers 4 64k;',
  'proxy_busy_buffers_size 128k;',
  'proxy_connect_timeout 3s;',
  'proxy_next_upstream_tries 4;',
  'proxy_next_upstream_timeout 12s;',
  'proxy_read_timeout 600s;',
  'proxy_send_timeout 600s;',
  'proxy_socket_keepalive on;',
];

/** Where a rule leads for a client. nginx has the name of a wildcard in `$host`: from the same place as `$authority`, in lower case, without port. */
const target = ({ id, host, destPort }: HttpServed): string =>
  `${clientNameOf('$from', keyOf(id), host.kind === 'suffix' ? '$host' : undefined)}:${destPort}`;

const refusalText = (name: string): string =>
  `Sallyport does not let this request through: no http rule of a BCSEgress at the proxy ${name} names this host and port ` +
  '(a rule with tls is for TLS clients that DNS leads here, one without for plain requests).';

const tunnelText = (name: string): string =>
  `Sallyport does not open this tunnel: the proxy ${name} runs nginx, which cannot do CONNECT. ` +
  'TLS hosts of its rules are reached by their server name where DNS leads to the proxy; engine envoy can do CONNECT.';

const awayText = (name: string): string =>
  `The proxy ${name} of Sallyport allows this host, but not for every namespace, or its name leads to no address that may be reached, or nobody answers there.`;
