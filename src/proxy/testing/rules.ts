/** Rules as a plan makes them, in one line each. */
import { parseIp, setOf } from '../../core/ip/index.ts';
import { projectClusterInfo } from '../../core/project/index.ts';
import { forbiddenFor } from '../../core/proxy/forbidden.ts';
import type { HostPattern, HttpServed, RuleSet, ServedRule, TcpServed } from '../../core/proxy/served.ts';
import { ip as ipOf } from '../../core/testing/address.ts';

const closed = setOf([]);

/** Where no name may lead: what every plan forbids when no range was opened, which holds the test bed's cluster too. */
export const forbidden: readonly string[] = forbiddenFor(projectClusterInfo(undefined), closed);

let revision = 0;

/** A rule set with a revision that no other one has. */
export const ruleSet = (...rules: readonly ServedRule[]): RuleSet => {
  revision += 1;
  return {
    revision: `test-${revision}`,
    name: 'bcs-system/test-proxy',
    rules: rules.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    forbidden,
  };
};

type TcpExtra = Partial<Pick<TcpServed, 'algorithm' | 'idleSeconds' | 'from'>>;

/** A TCP rule to addresses (an array) or to a name. */
export const tcpRule = (
  listenPort: number,
  to: string | readonly string[],
  destPort: number,
  extra: TcpExtra = {},
): TcpServed => ({
  kind: 'tcp',
  id: `team/egress/tcp-${listenPort}`,
  listenPort,
  destPort,
  to: typeof to === 'string' ? { kind: 'domain', name: to } : { kind: 'addresses', ips: to.map(ipOf) },
  algorithm: 'roundrobin',
  idleSeconds: 3600,
  ...extra,
});

/** An HTTP rule: `host` as users write it, a name, `*.suffix` or an address. */
export const httpRule = (
  host: string,
  extra: Partial<Pick<HttpServed, 'isTls' | 'destPort' | 'from'>> = {},
): HttpServed => {
  const isTls = extra.isTls ?? false;
  const destPort = extra.destPort ?? (isTls ? 443 : 80);
  const name = host.replace('*', 'any').replaceAll(/[^a-z0-9-]/g, '-');
  return {
    kind: 'http',
    id: `team/egress/${isTls ? 'tls' : 'http'}-${name}-${destPort}`,
    host: patternOf(host),
    isTls,
    destPort,
    ...(extra.from === undefined ? {} : { from: extra.from }),
  };
};

const patternOf = (host: string): HostPattern => {
  if (host.startsWith('*')) return { kind: 'suffix', suffix: host.slice(1) };
  const ip = parseIp(host);
  return ip.ok ? { kind: 'address', ip: ip.value } : { kind: 'exact', name: host };
};
