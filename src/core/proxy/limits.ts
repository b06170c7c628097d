/** What clients may ask of rules and the engine of their proxy does not offer, told before anybody finds out. Pure. */
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { EgressView, ProxyView } from './view.ts';

type Engine = ProxyView['engine'];

/**
 * What is missing, for plain requests and for tunnels; docs/explanation/proxy-engines.md says why. The suites of both engines
 * prove it (src/proxy/testing/conformance-clients.ts): an exception there is a line here.
 */
const missing: Readonly<Record<Engine, { readonly plain: readonly string[]; readonly tunnels: readonly string[] }>> = {
  envoy: {
    plain: ['a URL with a query and no path (http://host?query) gets 404'],
    tunnels: ['a tunnel ends when its client has ended its own side'],
  },
  nginx: {
    plain: [
      'logins of a connection (NTLM, Negotiate) do not work',
      'trailers of requests are left out',
      'nginx answers Expect: 100-continue before the server is asked',
      'clients that may not use a rule get 502 instead of 403',
    ],
    tunnels: [],
  },
};

/** For an object that uses the proxy; undefined when its engine offers everything. */
export const limitsOf = ({ rules }: Pick<EgressView, 'rules'>, proxy: ProxyView | undefined): Finding | undefined => {
  if (proxy === undefined) return undefined;
  const { key, engine } = proxy;
  const http = rules.filter((rule) => rule.kind === 'http');
  const tls = http.filter(({ isTls }) => isTls).map(({ name }) => name);
  const { plain, tunnels } = missing[engine];
  const others = [...(http.length > tls.length ? plain : []), ...(tls.length > 0 ? tunnels : [])];
  if (engine === 'nginx' && tls.length > 0) {
    const what = `The proxy ${key} runs nginx, which offers no CONNECT: clients with HTTPS_PROXY do not reach ${listed(tls)}.`;
    return finding('ConnectNotOffered', others.length === 0 ? what : `${what} Besides, ${others.join('; ')}.`);
  }
  return others.length === 0
    ? undefined
    : finding('ClientsLimited', `The proxy ${key} runs ${engine}, with which ${others.join('; ')}.`);
};

/** For the proxy itself: what would make an administrator choose another engine. */
export const limitsOfProxy = ({ key, engine }: Pick<ProxyView, 'key' | 'engine'>): Finding | undefined =>
  engine === 'nginx'
    ? finding(
        'ConnectNotOffered',
        `The proxy ${key} runs nginx, which offers no CONNECT: clients with HTTPS_PROXY reach no TLS host through it. Besides, ${missing.nginx.plain.join('; ')}.`,
      )
    : undefined;
