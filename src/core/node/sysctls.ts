/** The kernel settings that a node needs, by path below /proc/sys. Paths have slashes: names of devices may have dots. */
import { isIpv4, isIpv6 } from '../ip/index.ts';
import type { Claim } from './desired.ts';
import type { NodeSettings } from './input.ts';

/** The settings of a node; `isGateway` says whether traffic of policies leaves here. */
export const sysctlsOf = (
  { hasIpv4, hasIpv6, device }: NodeSettings,
  hasTunnel: boolean,
  isGateway: boolean,
  claims: readonly Claim[],
): ReadonlyMap<string, string> => {
  const sysctls = new Map<string, string>();
  if (hasIpv4) sysctls.set('net/ipv4/ip_forward', '1');
  if (hasIpv6) sysctls.set('net/ipv6/conf/all/forwarding', '1');
  // Replies come out of the tunnel with addresses from anywhere, and only nodes can send through it. The check of sources
  // would ask two tables about each packet; without it the kernel still asks whether the source is its own, but for the
  // second setting (net/ipv4/fib_frontend.c, 6.18).
  if (hasIpv4 && hasTunnel) {
    sysctls.set(`net/ipv4/conf/${device}/rp_filter`, '0');
    sysctls.set(`net/ipv4/conf/${device}/accept_local`, '1');
  }
  // A connection that moves here from another gateway node is picked up in the middle.
  if (isGateway) sysctls.set('net/netfilter/nf_conntrack_tcp_loose', '1');
  for (const name of interfacesOf(claims.filter(({ ip }) => isIpv4(ip)))) {
    // The EIP is on another device than the one that is asked; with arp_ignore the kernel would not answer.
    sysctls.set('net/ipv4/conf/all/arp_ignore', '0');
    sysctls.set(`net/ipv4/conf/${name}/arp_ignore`, '0');
  }
  for (const name of interfacesOf(claims.filter(({ ip }) => isIpv6(ip)))) {
    // An address on another device is answered for only by proxy, and by default up to 0.8 s late.
    sysctls.set(`net/ipv6/conf/${name}/proxy_ndp`, '1');
    sysctls.set(`net/ipv6/neigh/${name}/proxy_delay`, '0');
  }
  return sysctls;
};

const interfacesOf = (claims: readonly Claim[]): ReadonlySet<string> =>
  new Set(claims.flatMap(({ interfaces }) => interfaces));
