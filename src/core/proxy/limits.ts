/** What clients may ask of rules and the engine of their proxy does not offer, told before anybody finds out. Pure. */
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { EgressView, ProxyView } from './view.ts';

/** For an object that uses the proxy; undefined when its engine offers everything. */
export const limitsOf = ({ rules }: Pick<EgressView, 'rules'>, proxy: ProxyView | undefined): Finding | undefined => {
  if (proxy?.engine !== 'nginx') return undefined;
  const tls = rules.flatMap((rule) => (rule.kind === 'http' && rule.isTls ? [rule.name] : []));
  return tls.length === 0
    ? undefined
    : finding(
        'ConnectNotOffered',
        `The proxy ${proxy.key} runs nginx, which offers no CONNECT: clients with HTTPS_PROXY do not reach ${listed(tls)}.`,
      );
};

/** For the proxy itself. */
export const limitsOfProxy = ({ key, engine }: Pick<ProxyView, 'key' | 'engine'>): Finding | undefined =>
  engine === 'nginx'
    ? finding(
        'ConnectNotOffered',
        `The proxy ${key} runs nginx, which offers no CONNECT: clients with HTTPS_PROXY reach no TLS host through it.`,
      )
    : undefined;
