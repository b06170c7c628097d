/** EgressEndpointSlice and EgressClusterEndpointSlice: the public record of the pods under a policy. */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';

/** The most endpoints that one slice may have; the configuration may ask for fewer. */
export const maxEndpointsPerSlice = 1000;

/** One pod under a policy. */
export const EgressEndpoint = z.object({
  ns: z.string().describe('Namespace of the pod.').optional(),
  pod: z.string().describe('Name of the pod.').optional(),
  ipv4: z.array(z.string()).describe('IPv4 addresses of the pod.').optional(),
  ipv6: z.array(z.string()).describe('IPv6 addresses of the pod.').optional(),
  node: z.string().describe('Node that the pod runs on.').optional(),
});
export type EgressEndpoint = Immutable<z.infer<typeof EgressEndpoint>>;

const endpoints = z
  .array(EgressEndpoint)
  .max(maxEndpointsPerSlice)
  .describe('Pods that the policy applies to, by default at most 100 per slice.')
  .optional();

/** A whole EgressEndpointSlice; the endpoints are at the top level, as in earlier versions. */
export const EgressEndpointSlice = objectOf(`${gatewayGroup}/v1beta1`, 'EgressEndpointSlice', { endpoints }).describe(
  'EgressEndpointSlice lists pods under an EgressPolicy. It belongs to the policy and is made by the controller.',
);
export type EgressEndpointSlice = Immutable<z.infer<typeof EgressEndpointSlice>>;

/** A whole EgressClusterEndpointSlice. */
export const EgressClusterEndpointSlice = objectOf(`${gatewayGroup}/v1beta1`, 'EgressClusterEndpointSlice', {
  endpoints,
}).describe(
  'EgressClusterEndpointSlice lists pods under an EgressClusterPolicy. It belongs to the policy and is made by the controller.',
);
export type EgressClusterEndpointSlice = Immutable<z.infer<typeof EgressClusterEndpointSlice>>;
