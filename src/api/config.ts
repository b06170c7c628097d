/**
 * The configuration file that all processes read; src/runtime/config reads it and keeps it in step. Keys that earlier
 * versions had keep their names.
 */
import { z } from 'zod';
import { addressEntry, maxEntries } from './address-entry.ts';
import { maxEndpointsPerSlice } from './egress-endpoint-slice.ts';
import type { Immutable } from './immutable.ts';
import { familyOfCidr, parseCidrMasking } from './ip/cidr.ts';
import { lower, type StructuralSchema } from './structural.ts';

/**
 * Interface names have at most 15 characters (IFNAMSIZ - 1). The kernel takes nearly every character; these are the ones
 * that mean nothing else in the scripts for nft and ip, which the names get into.
 */
const interfacePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/;

const tunnelSubnet = (family: 4 | 6, fallback: string) =>
  z
    .string()
    .refine((text) => {
      const cidr = parseCidrMasking(text);
      return cidr.ok && familyOfCidr(cidr.value) === family;
    }, `must be an IPv${family} CIDR such as ${fallback}`)
    .default(fallback);

const interfaceName = z
  .string()
  .refine(
    (text) => interfacePattern.test(text),
    'must be the name of a network interface, at most 15 letters, digits, ".", "_" and "-"',
  );

const Vxlan = z.strictObject({
  name: interfaceName
    .default('egress.vxlan')
    .describe('Name of the tunnel device. Takes effect when the agents restart.'),
  id: z
    .int()
    .min(1)
    .max(16777215)
    .default(100)
    .describe('VXLAN network identifier. The same on all nodes; takes effect when the agents restart.'),
  port: z
    .int()
    .min(1)
    .max(65535)
    .default(7789)
    .describe('UDP port of the tunnel. The same on all nodes; takes effect when the agents restart.'),
  disableChecksumOffload: z
    .boolean()
    .default(false)
    .describe('Whether checksums of tunnel packets are computed by the kernel instead of the network card.'),
  enableGRO: z
    .boolean()
    .default(false)
    .describe(
      'Whether the tunnel device joins packets that arrive. Network cards that check checksums have done so already; on others it makes long transfers cheaper and single packets dearer.',
    ),
});

const AutoDetect = z.strictObject({
  podCIDR: z
    .enum(['', 'k8s', 'calico', 'auto'])
    .default('auto')
    .describe(
      'Where the pod ranges come from: `k8s` (the nodes; also the empty text), `calico` (its IPPools) or `auto` (Calico if it is there, else the nodes).',
    ),
  clusterIP: z.boolean().default(true).describe('Whether the Service ranges are detected.'),
  nodeIP: z.boolean().default(true).describe('Whether the addresses of the nodes are detected.'),
});

const EgressIgnoreCidr = z.strictObject({
  autoDetect: AutoDetect.prefault({}).describe('What the controller writes into a new EgressClusterInfo.'),
  custom: z
    .array(addressEntry('custom'))
    .max(maxEntries)
    .default([])
    .describe('More destinations that count as part of the cluster: addresses, ranges and CIDRs.'),
});

const seconds = () => z.int().min(1).max(3600);

const GatewayFailover = z
  .strictObject({
    enable: z.boolean().default(true).describe('Whether EIPs move when the agent of a gateway node falls silent.'),
    tunnelMonitorPeriod: seconds().default(5).describe('Seconds between two looks of the controller at the tunnels.'),
    tunnelUpdatePeriod: seconds()
      .default(5)
      .describe('Seconds between two signs of life of an agent to the API server.'),
    eipEvictionTimeout: seconds()
      .default(15)
      .describe(
        'Seconds of silence after which the controller moves the EIPs of a node; at least the sum of the two periods. Gateway nodes and voters, which watch each other, have `failover.graceSeconds` and one `tunnelUpdatePeriod` at the least.',
      ),
  })
  .refine(
    (failover) => failover.eipEvictionTimeout >= failover.tunnelMonitorPeriod + failover.tunnelUpdatePeriod,
    'eipEvictionTimeout must be at least tunnelMonitorPeriod + tunnelUpdatePeriod, or a healthy node would be given up',
  );

const Failover = z
  .strictObject({
    heartbeatMilliseconds: z
      .int()
      .min(10)
      .max(1000)
      .default(25)
      .describe(
        'Milliseconds between two heartbeats of a gateway node. A round trip between nodes should stay below twice this. Takes effect when the agents restart.',
      ),
    heartbeatCount: z
      .int()
      .min(3)
      .max(20)
      .default(4)
      .describe(
        'How many heartbeats may be missing before a node counts as silent. Takes effect when the agents restart.',
      ),
    graceSeconds: z
      .int()
      .min(5)
      .max(600)
      .default(30)
      .describe(
        'Seconds for which a gateway node keeps its EIPs at the most while its agent is silent and its kernel answers; at least four times the silence. Its kernel lets them go after 0.85 to 0.9 of it, and another node takes them over less than half a second later. Takes effect when the agents restart.',
      ),
    port: z
      .int()
      .min(1)
      .max(65534)
      .default(7791)
      .describe(
        'UDP port of heartbeats, and TCP port at which kernels are asked, on the tunnel addresses of nodes. Nobody may listen on that TCP port. Connections are mirrored on the UDP port above it. Takes effect when the agents restart.',
      ),
  })
  .refine(
    ({ heartbeatMilliseconds, heartbeatCount, graceSeconds }) =>
      graceSeconds * 1000 >= 4 * heartbeatMilliseconds * heartbeatCount,
    'graceSeconds must be at least four times heartbeatMilliseconds x heartbeatCount, or a kernel would have no time to let go',
  );

const CustomInterface = z.strictObject({
  nodeSelector: z.record(z.string(), z.string()).describe('Labels of the nodes meant; all must match.'),
  interfaceName: interfaceName.describe('The interface that carries the tunnel on these nodes.'),
});

const Feature = z
  .strictObject({
    enableIPv4: z
      .boolean()
      .default(true)
      .describe('Whether IPv4 traffic is handled. Takes effect when all processes restart.'),
    enableIPv6: z
      .boolean()
      .default(false)
      .describe(
        'Whether IPv6 traffic is handled. Not both families may be off. Takes effect when all processes restart.',
      ),
    tunnelIpv4Subnet: tunnelSubnet(4, '172.31.0.0/16').describe(
      'IPv4 range of the tunnel network as a CIDR. It must not be in use; what is known to overlap is told as `TunnelRangeOverlaps`. Default VPCs of AWS have the default too: choose another one there.',
    ),
    tunnelIpv6Subnet: tunnelSubnet(6, 'fd11::/112').describe(
      'IPv6 range of the tunnel network as a CIDR. It must not be in use; what is known to overlap is told as `TunnelRangeOverlaps`.',
    ),
    tunnelDetectMethod: z
      .string()
      .refine(isDetectMethod, 'must be "defaultRouteInterface" or "interface=" and the name of an interface')
      .default('defaultRouteInterface')
      .describe('Which interface carries the tunnel: the one of the default route, or a named one (`interface=eth1`).'),
    tunnelDetectCustomInterface: z
      .array(CustomInterface)
      .max(maxEntries)
      .default([])
      .describe('Other interfaces for some nodes; the first entry that matches a node wins.'),
    vxlan: Vxlan.prefault({}).describe('The tunnel device.'),
    egressIgnoreCIDR: EgressIgnoreCidr.prefault({}).describe('Destinations that are inside the cluster.'),
    maxNumberEndpointPerSlice: z
      .int()
      .min(1)
      .max(maxEndpointsPerSlice)
      .default(100)
      .describe('The most pods in one endpoint slice. Existing slices are rewritten as they change.'),
    announcedInterfacesToExclude: z
      .array(z.string().refine(isRegExp, 'must be a regular expression such as "^cali.*"'))
      .max(maxEntries)
      .default(['^cali.*', '^br-[0-9a-f]{12}$'])
      .describe(
        'Regular expressions; EIPs are not announced on interfaces whose name matches one of them. `br-*` means the bridges of Docker.',
      ),
    gatewayFailover: GatewayFailover.prefault({}).describe(
      'When the controller moves EIPs away from a silent node. Gateway nodes that see each other act sooner, see `failover`.',
    ),
    failover: Failover.prefault({}).describe('How gateway nodes notice that one of them is lost, among themselves.'),
    strictPodStart: z
      .boolean()
      .default(false)
      .describe(
        'Whether traffic of a pod that the agent of its node does not know yet is held back, so that no packet leaves with the wrong address.',
      ),
  })
  .refine((feature) => feature.enableIPv4 || feature.enableIPv6, 'enableIPv4 and enableIPv6 must not both be false');

/** The whole file; a parse fills in the defaults and refuses unknown keys. */
export const Config = z.strictObject({
  feature: Feature.prefault({}).describe('What Sallyport does and how.'),
});
export type Config = Immutable<z.infer<typeof Config>>;

/** The configuration as a schema for the reference page and for sentences about faults. */
export const configSchema = (): StructuralSchema => lower(Config, 'configuration');

function isDetectMethod(text: string): boolean {
  const prefix = 'interface=';
  if (text.startsWith(prefix)) return interfacePattern.test(text.slice(prefix.length));
  return text === 'defaultRouteInterface';
}

function isRegExp(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
