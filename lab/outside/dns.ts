import { renameSync, writeFileSync } from 'node:fs';
import { addresses, outsideDomain } from '../cluster/shape.ts';

/** Outside names that can be changed while the lab runs: name -> its addresses, of both families. */
export type OutsideNames = Readonly<Record<string, readonly string[]>>;

/** How long others may keep an answer about a name that can be changed. */
const ttlSeconds = 1;
/** Where names that nobody has set end up: a server block of the same process. */
const unknownPort = 5353;

/**
 * Configuration of the DNS server outside the cluster (the same CoreDNS, without Kubernetes): every name under the
 * outside domain is the outside server, the names of a file are what it says, all other names do not exist. It answers
 * at once in any case: a resolver that does not answer costs every lookup in the cluster seconds.
 */
export function outsideCorefile(namesFile: string): string {
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
  hosts ${namesFile} {
    ttl ${ttlSeconds}
    reload 100ms
    no_reverse
    fallthrough
  }
  forward . 127.0.0.1:${unknownPort}
}
.:${unknownPort} {
  bind 127.0.0.1
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;
}

/** Writes the names in one step; the server sees it within a fraction of a second. */
export function writeOutsideNames(file: string, names: OutsideNames): void {
  const lines = Object.entries(names).flatMap(([name, ips]) => ips.map((ip) => `${ip} ${name}\n`));
  // The server compares size and time of the file: a comment that is always another makes every change one.
  writeFileSync(`${file}.new`, `# ${process.hrtime.bigint()}\n${lines.join('')}`);
  renameSync(`${file}.new`, file);
}
