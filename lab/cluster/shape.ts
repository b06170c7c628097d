import { z } from 'zod';

/**
 * The shape of a lab is plain data: who is in it and which addresses it has. All labs use the same addresses: each has
 * namespaces of its own, so they never meet.
 *
 *   outside (router and servers) --- fabric bridge --- control-plane
 *                                        |-- gateway-1 .. gateway-N   (label egress=true)
 *                                        '-- worker-1 .. worker-N
 */
export const proxyModes = ['nftables', 'iptables'] as const;
export type ProxyMode = (typeof proxyModes)[number];

/** Address families. A lab has both, or one only: then nodes, pods and Services have no address of the other. */
export const families = ['ipv4', 'ipv6'] as const;
export type Family = (typeof families)[number];

const dual = z.object({ ipv4: z.string(), ipv6: z.string() });
const nodeSchema = z.object({
  name: z.string(),
  ipv4: z.string(),
  ipv6: z.string(),
  podCidr: dual,
  isGateway: z.boolean(),
  proxyMode: z.enum(proxyModes),
});
export const shapeSchema = z.object({
  families: z.array(z.enum(families)).min(1),
  nodes: z.array(nodeSchema),
});

export type LabNode = Readonly<z.infer<typeof nodeSchema>>;
export interface LabShape {
  /** Which of the addresses below exist. */
  readonly families: readonly Family[];
  readonly nodes: readonly LabNode[];
}

/** What a user may choose. */
export interface ShapeRequest {
  readonly gateways: number;
  readonly workers: number;
  /** Both when absent. */
  readonly families?: readonly Family[];
  /** Node name -> mode, where it is not nftables. */
  readonly proxyModeByNode: ReadonlyMap<string, ProxyMode>;
}

/** Node addresses are .11 to .98 of the node network; the EIPs begin at .100. */
export const mostNodes = 88;

/** Fixed addresses. The outside servers are not in the node network: a packet to them must pass the router. */
export const addresses = {
  nodeNetwork: { ipv4: '10.77.0.0/24', ipv6: 'fd77::/64' },
  podNetwork: { ipv4: '10.244.0.0/16', ipv6: 'fd44::/48' },
  serviceNetwork: { ipv4: '10.96.0.0/16', ipv6: 'fd96::/108' },
  router: { ipv4: '10.77.0.1', ipv6: 'fd77::1' },
  controlPlane: { ipv4: '10.77.0.2', ipv6: 'fd77::2' },
  outside: { ipv4: '198.51.100.10', ipv6: '2001:db8:51::10' },
  /** The same servers at another address, for policies that are about one destination only. */
  elsewhere: { ipv4: '203.0.113.10', ipv6: '2001:db8:113::10' },
  /** And more of them, for tests that choose destinations by chance. */
  anywhere: [
    { ipv4: '198.51.100.11', ipv6: '2001:db8:51::11' },
    { ipv4: '198.51.100.77', ipv6: '2001:db8:51::77' },
    { ipv4: '203.0.113.11', ipv6: '2001:db8:113::11' },
    { ipv4: '192.0.2.10', ipv6: '2001:db8:2::10' },
  ],
  kubernetesService: { ipv4: '10.96.0.1', ipv6: 'fd96::1' },
  clusterDns: { ipv4: '10.96.0.10', ipv6: 'fd96::a' },
} as const;

/** Every address of the outside servers. */
export const outsideAddresses = [addresses.outside, addresses.elsewhere, ...addresses.anywhere];

/** An address as it stands in a URL. */
export const urlHost = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/** Ports of the outside servers, and of the API server. */
export const ports = {
  http: 8080,
  tcp: 9000,
  udp: 9001,
  flows: 9002,
  web: 80,
  tls: 443,
  database: 5432,
  apiServer: 6443,
} as const;
export const clusterDomain = 'cluster.local';
/** Every name under this domain resolves to the outside server. */
export const outsideDomain = 'outside.test';

const eipCount = 100;

/** The nodes of a lab with their addresses: gateways first. */
export function shapeOf(request: ShapeRequest): LabShape {
  const names = [
    ...Array.from({ length: request.gateways }, (_, index) => `gateway-${index + 1}`),
    ...Array.from({ length: request.workers }, (_, index) => `worker-${index + 1}`),
  ];
  const nodes = names.map((name, index): LabNode => {
    const number = index + 1;
    return {
      name,
      ipv4: `10.77.0.${10 + number}`,
      // The same digits in both families, so that a person sees which node it is.
      ipv6: `fd77::${10 + number}`,
      podCidr: { ipv4: `10.244.${number}.0/24`, ipv6: `fd44:0:0:${number.toString(16)}::/64` },
      isGateway: name.startsWith('gateway-'),
      proxyMode: request.proxyModeByNode.get(name) ?? 'nftables',
    };
  });
  return { families: [...(request.families ?? families)], nodes };
}

/** Free addresses of the node network that may be used as EIPs. */
export function freeEips(): { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] } {
  const numbers = Array.from({ length: eipCount }, (_, index) => 100 + index);
  return {
    ipv4: numbers.map((number) => `10.77.0.${number}`),
    ipv6: numbers.map((number) => `fd77::${number}`),
  };
}
