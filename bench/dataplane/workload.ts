/** What is asked of a gateway: N policies, each with ten pods and two destinations per family. All ways get the same. */
import { addresses } from './site.ts';

/** An address of each family. */
export interface Pair {
  readonly ipv4: string;
  readonly ipv6: string;
}

export interface WorkloadPolicy {
  readonly name: string;
  readonly pods: readonly Pair[];
  readonly destinations: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] };
}

const podsPerPolicy = 10;

/**
 * The policies of a workload. The last one is about the pod that is measured and the outside server, so that no list
 * favours it; the others are about other destinations, which spares the seed's rules their second lookup.
 */
export function workloadOf(policies: number): WorkloadPolicy[] {
  return Array.from({ length: policies }, (_, index) => {
    const isMeasured = index === policies - 1;
    const { high, low } = { high: index >> 8, low: index & 255 };
    return {
      name: `policy-${index}`,
      pods: Array.from({ length: podsPerPolicy }, (_, number) =>
        isMeasured && number === 0 ? addresses.pod : podPair(index * podsPerPolicy + number),
      ),
      destinations: {
        ipv4: [isMeasured ? '10.6.0.128/25' : `172.${16 + high}.${low}.0/24`, `100.${64 + high}.${low}.0/24`],
        ipv6: [isMeasured ? 'fd06::200/121' : `2001:db8:${index.toString(16)}::/48`, `fd07:${index.toString(16)}::/32`],
      },
    };
  });
}

/** All pods of one node: 50,000 fit below the two that stand as namespaces. */
const podPair = (number: number): Pair => ({
  ipv4: `10.244.${(number + 1) >> 8}.${(number + 1) & 255}`,
  ipv6: `fd44::${(number + 1).toString(16)}`,
});
