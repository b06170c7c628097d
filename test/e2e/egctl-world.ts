/** What the test of egctl applies, and how the answers look that it reads. */
import { z } from 'zod';

export const apiVersion = 'egressgateway.spidernet.io/v1beta1';
const matchLabels = { app: 'client' };
/** One client on every node, under policies that disagree about destinations, families and addresses. */
export const clients = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'many' } },
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'client', namespace: 'many' },
    spec: {
      selector: { matchLabels },
      template: {
        metadata: { labels: matchLabels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'client', image: 'any/image:will-do', command: ['sleep', 'infinity'] }],
        },
      },
    },
  },
  {
    apiVersion,
    kind: 'EgressGateway',
    metadata: { name: 'ipv4-only' },
    spec: {
      ippools: { ipv4: ['10.77.0.160'] },
      nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
    },
  },
  {
    // There is only an IPv4 address, so IPv6 has to be dropped; 203.0.113.10 is left to whoever comes next.
    apiVersion,
    kind: 'EgressPolicy',
    metadata: { name: 'ipv4-only', namespace: 'many' },
    spec: {
      egressGatewayName: 'ipv4-only',
      appliedTo: { podSelector: { matchLabels } },
      destSubnet: ['198.51.100.0/24', '203.0.113.0/24', '2001:db8:51::/64'],
      exceptSubnet: ['203.0.113.10'],
    },
  },
  {
    // With the address of the gateway node, for the pods of worker-1 only.
    apiVersion,
    kind: 'EgressClusterPolicy',
    metadata: { name: 'node-ip' },
    spec: {
      egressGatewayName: 'office',
      egressIP: { useNodeIP: true },
      appliedTo: { podSubnet: ['10.244.3.0/24', 'fd44:0:0:3::/64'], namespaceSelector: {} },
      destSubnet: ['203.0.113.0/24'],
    },
  },
];
export const podsSchema = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string() }), spec: z.object({ nodeName: z.string() }) })),
});
export const kubeconfigSchema = z.looseObject({ users: z.array(z.object({ name: z.string() })) });
export const whySchema = z.object({
  notes: z.array(z.string()),
  ways: z.array(
    z.object({
      outcome: z.object({
        kind: z.enum(['gateway', 'drop', 'nodeIp', 'leftAlone']),
        eip: z.string().optional(),
        node: z.string().optional(),
      }),
    }),
  ),
  checks: z.array(z.object({ where: z.string(), result: z.string(), sentence: z.string() })),
});
export const recordSchema = z.object({
  status: z.object({ eip: z.object({ ipv4: z.string() }), node: z.string() }),
});
export const statusSchema = z.object({
  problems: z.array(z.object({ about: z.string(), name: z.string(), reason: z.string().optional() })),
});
