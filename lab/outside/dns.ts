import { addresses, outsideDomain } from '../cluster/shape.ts';

/**
 * Configuration of the DNS server outside the cluster (the same CoreDNS, without Kubernetes): every name under the
 * outside domain is the outside server, all other names do not exist. It answers at once either way: a resolver that
 * does not answer costs every lookup in the cluster seconds.
 */
export function outsideCorefile(): string {
  return `${outsideDomain}:53 {
  template IN A {
    answer "{{ .Name }} 60 IN A ${addresses.outside.ipv4}"
  }
  template IN AAAA {
    answer "{{ .Name }} 60 IN AAAA ${addresses.outside.ipv6}"
  }
  template IN ANY {
    rcode NOERROR
  }
}
.:53 {
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;
}
