/**
 * Servers of single hosts. A request for a host that one rule names is the usual one; nginx finds its server by a hash of the name. What is left to ask is whether the request says the same in its
 * URL and in Host, with the port of the rule: one short pattern and one look-up of both together. The line of the log is
 * written as users read it, since nothing is in it that a client could choose freely.
 */
import type { HostPattern, HttpServed } from '../../core/proxy/served.ts';
import { clientNameOf } from '../dns/client-name.ts';
import { keyOf } from '../engine/rule-key.ts';
import { hostText } from '../engine/sni-rules.ts';
import { finalFormat } from './log-format.ts';
import { hostOf, isPlainId } from './words.ts';

const HTTP_PORT = 80;

/** A server takes 60 KB, in each older generation that finishes its connections too. Hosts beyond these go the general way. */
export const MOST_OWN_HOSTS = 100;

/** What servers of hosts have in common, as text of the configuration. */
export interface HostSettings {
  /** The file and the options of the log, with the place of the format between them. */
  readonly accessLog: (format: string) => string;
  readonly listen: readonly string[];
  /** The location that shows refusals of nginx itself. */
  readonly refusals: readonly string[];
  /** What a request gets that no rule allows. */
  readonly refuse: readonly string[];
  /** What a request gets that has come back too often. */
  readonly refuseLoop: readonly string[];
}

/** The rules whose hosts have a server, the first of them: no other rule is for a host of that name, whatever its port. */
export const ownHosts = (plain: readonly HttpServed[]): HttpServed[] => {
  const rulesByName = new Map<string, number>();
  const suffixes: string[] = [];
  for (const { host } of plain) {
    if (host.kind === 'suffix') suffixes.push(host.suffix);
    else rulesByName.set(nameOf(host), (rulesByName.get(nameOf(host)) ?? 0) + 1);
  }
  const alone = plain.filter(({ id, host }) => {
    const name = nameOf(host);
    return (
      host.kind !== 'suffix' &&
      rulesByName.get(name) === 1 &&
      !suffixes.some((suffix) => name.endsWith(suffix)) &&
      isPlainId(id)
    );
  });
  return alone.slice(0, MOST_OWN_HOSTS);
};

/** How clients may write the host of a rule: with its port, and without it when it is the usual one. */
export const authorities = ({ host, destPort }: HttpServed): string[] => {
  const text = nameOf(host);
  return destPort === HTTP_PORT ? [text, `${text}:${HTTP_PORT}`] : [`${text}:${destPort}`];
};

/** The same with a dot at the end of the name. */
const dotted = ({ host, destPort }: HttpServed): string[] => {
  if (host.kind === 'address') return [];
  const text = `${nameOf(host)}.`;
  return destPort === HTTP_PORT ? [text, `${text}:${HTTP_PORT}`] : [`${text}:${destPort}`];
};

/** `$exact` is the rule of a request that says its host in one of the ways that are allowed, and empty for all others. */
export const hostMaps = (own: readonly HttpServed[]): string[] => [
  '  # What the URL names: its authority, or a stroke where it is a path.',
  '  map $request $named {',
  '    default "";',
  '    "~*^[a-z]+ /" "/";',
  String.raw`    "~*^[a-z]+ http://(?<named_authority>[^/?#\s]+)[/?#\s]" $named_authority;`,
  '  }',
  '  map "$http_host $named" $exact {',
  '    default "";',
  ...own.flatMap((rule) => {
    const written = [...authorities(rule), ...dotted(rule)];
    const both = written.flatMap((told) => ['/', ...written].map((named) => `${told} ${named}`));
    // HTTP/1.0 has no Host; nginx itself refuses a later version without it.
    const named = written.map((text) => ` ${text}`);
    return [...both, ...named].map((text) => `    "${text}" ${keyOf(rule.id)};`);
  }),
  '  }',
];

/** The servers. */
export const hostServers = (own: readonly HttpServed[], settings: HostSettings): string[] =>
  own.flatMap(({ id, host, destPort }) => [
    `  log_format ${keyOf(id)} escape=none '${finalFormat(id)}';`,
    '  server {',
    ...settings.listen.map((at) => `    listen ${at};`),
    `    server_name "${nameOf(host)}";`,
    ...settings.refusals,
    '    location / {',
    `      ${settings.accessLog(keyOf(id))}`,
    `      if ($exact != ${keyOf(id)}) {`,
    ...settings.refuse,
    '      }',
    '      if ($is_loop) {',
    ...settings.refuseLoop,
    '      }',
    `      set $there "${clientNameOf('$from', keyOf(id))}:${destPort}";`,
    '      proxy_pass http://$there;',
    '    }',
    '  }',
  ]);

const nameOf = (host: HostPattern): string => (host.kind === 'address' ? hostOf(host.ip) : hostText(host));
