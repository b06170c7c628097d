/**
 * The allow-list of the HTTP proxy as one route configuration, so that a change of it touches no connection. A request is
 * judged by its URL (or by its Host when it has none), whole, with its port; what no rule names gets 403.
 */
import { isIpv6 } from '../../core/ip/index.ts';
import type { HostPattern, HttpServed, RuleSet } from '../../core/proxy/served.ts';
import { HOP, HOP_HEADER, loopText, MOST_HOPS } from '../engine/loops.ts';
import { hostText } from '../engine/sni-rules.ts';
import { type EnvoyMessage, seconds, typed } from './message.ts';
import { MARK, markedBy } from './sources.ts';

/** Name of the one route configuration. */
export const ROUTES = 'rules';
/** Names of routes, which the access log tells: the kind of the request, and behind it whether it is a refusal. */
type RouteName = 'http' | 'connect' | `${'http' | 'connect'}${typeof REFUSED}` | `http${typeof LOOPED}`;
export const REFUSED = ' refused';
export const LOOPED = ' looped';
/** Name of the filter that resolves names for clients. */
export const DYNAMIC_FORWARD_PROXY = 'envoy.filters.http.dynamic_forward_proxy';

const TUNNEL_IDLE_SECONDS = 3600;

/** The allow-list of a rule set. */
export const routesOf = (rules: RuleSet): EnvoyMessage => {
  const hosts = hostsOf(rules.rules.filter((rule) => rule.kind === 'http'));
  const refusal = refusedRoutes(rules.name);
  const looped = loopedRoute(rules.name);
  return {
    name: ROUTES,
    virtual_hosts: [
      ...hosts.map((host) => ({
        name: host.domains.join(' '),
        domains: host.domains,
        routes: [...(host.plain === undefined ? [] : [looped]), ...routesTo(host), ...refusal],
      })),
      { name: 'refused', domains: ['*'], routes: refusal },
    ],
    // For the next turn, should there be one.
    request_headers_to_add: [{ header: { key: HOP_HEADER, value: HOP }, append_action: 'APPEND_IF_EXISTS_OR_ADD' }],
    // A server is told nothing else of the proxy, and never what a client says to the proxy alone.
    request_headers_to_remove: [
      MARK,
      'proxy-authorization',
      'proxy-connection',
      'x-envoy-attempt-count',
      'x-envoy-expected-rq-timeout-ms',
      'x-envoy-external-address',
      'x-envoy-internal',
      'x-forwarded-proto',
    ],
  };
};

/** A host with a port, as clients write it, and the rules that let it through. */
interface Host {
  readonly pattern: HostPattern;
  readonly port: number;
  readonly domains: readonly string[];
  readonly plain: HttpServed | undefined;
  readonly tls: HttpServed | undefined;
}

/** Every host once: Envoy looks at the most specific one only, so that one also has what wider rules allow. */
const hostsOf = (rules: readonly HttpServed[]): Host[] => {
  const byKey = new Map(rules.map((rule) => [domainsOf(rule.host, rule.destPort).join(' '), rule]));
  const byText = Map.groupBy(rules, ({ host, destPort }) => `${textOf(host)} ${destPort}`);
  return [...byKey.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { host: pattern, destPort: port }]) => {
      const covering = [textOf(pattern), ...wildcardsOver(pattern)].flatMap(
        (text) => byText.get(`${text} ${port}`) ?? [],
      );
      return {
        pattern,
        port,
        domains: domainsOf(pattern, port),
        plain: covering.find(({ isTls }) => !isTls),
        tls: covering.find(({ isTls }) => isTls),
      };
    });
};

const domainsOf = (pattern: HostPattern, port: number): string[] => {
  const text = textOf(pattern);
  return port === 80 ? [text, `${text}:80`] : [`${text}:${port}`];
};

const textOf = (pattern: HostPattern): string =>
  pattern.kind === 'address' && isIpv6(pattern.ip) ? `[${pattern.ip}]` : hostText(pattern);

/** The wildcards that a host is under, the narrowest first: of `a.example.com` these are `*.example.com` and `*.com`. */
const wildcardsOver = (pattern: HostPattern): string[] => {
  if (pattern.kind === 'address') return [];
  const labels = (pattern.kind === 'exact' ? pattern.name : pattern.suffix.slice(1)).split('.');
  return labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`);
};

const routesTo = ({ pattern, plain, tls }: Host): EnvoyMessage[] => [
  ...(tls === undefined
    ? []
    : [
        {
          ...named('connect'),
          match: { connect_matcher: {}, headers: [...authorityHeaders(pattern), ...markedBy(tls.from)] },
          ...resolvedForClients(tls),
          route: {
            cluster: tls.id,
            timeout: seconds(0),
            idle_timeout: seconds(TUNNEL_IDLE_SECONDS),
            upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }],
            retry_policy: retries,
          },
        },
      ]),
  ...(plain === undefined
    ? []
    : [
        {
          ...named('http'),
          match: {
            prefix: '/',
            headers: [
              ...authorityHeaders(pattern),
              { name: ':scheme', string_match: { exact: 'http' } },
              ...markedBy(plain.from),
            ],
          },
          ...resolvedForClients(plain),
          route: {
            cluster: plain.id,
            timeout: seconds(0),
            upgrade_configs: [{ upgrade_type: 'websocket' }],
            retry_policy: retries,
          },
        },
      ]),
];

/** Names under a wildcard are resolved when clients ask for them, by a filter that all other requests are spared. */
const resolvedForClients = ({ host }: HttpServed): EnvoyMessage =>
  host.kind === 'suffix'
    ? {
        typed_per_filter_config: {
          [DYNAMIC_FORWARD_PROXY]: typed('envoy.config.route.v3.FilterConfig', { config: {} }),
        },
      }
    : {};

/**
 * Only connections that could not be made are tried again: no request is ever sent twice. The address that failed is left out
 * of the next choice by the outlier detection of the cluster, for which the pause is long enough.
 */
const retries: EnvoyMessage = {
  retry_on: 'connect-failure',
  num_retries: 4,
  retry_back_off: { base_interval: '0.01s', max_interval: '0.1s' },
};

/** A wildcard takes whatever ends like it, so all of it must be a name and a port: nothing that two readers could split differently. */
const authorityHeaders = (pattern: HostPattern): EnvoyMessage[] =>
  pattern.kind === 'suffix'
    ? [{ name: ':authority', string_match: { safe_regex: { regex: '[A-Za-z0-9._-]+(:[0-9]+)?' } } }]
    : [];

/** The answers to what no rule allows; everything that Envoy can read fits one of the three. */
const refusedRoutes = (name: string): EnvoyMessage[] => {
  const refusal = (kind: 'http' | 'connect'): EnvoyMessage => ({
    ...named(`${kind}${REFUSED}`),
    direct_response: { status: 403, body: { inline_string: refusalText(name) } },
  });
  return [
    { match: { connect_matcher: {} }, ...refusal('connect') },
    { match: { prefix: '/' }, ...refusal('http') },
    { match: { path: '*' }, ...refusal('http') },
  ];
};

/** The answer to a plain request that has come back too often. Several headers of that name are one with commas. */
const loopedRoute = (name: string): EnvoyMessage => ({
  ...named(`http${LOOPED}`),
  match: {
    prefix: '/',
    headers: [{ name: HOP_HEADER, string_match: { safe_regex: { regex: `(?i)(.*${HOP}){${MOST_HOPS}}.*` } } }],
  },
  direct_response: { status: 508, body: { inline_string: `${loopText(name)}\n` } },
});

const refusalText = (name: string): string =>
  `Sallyport does not let this request through: no http rule of a BCSEgress at the proxy ${name} names this host and port ` +
  `(a rule with tls is for CONNECT, one without for plain requests).\n`;

const named = (name: RouteName): EnvoyMessage => ({ name });
