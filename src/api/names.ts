/** Labels and finalizers that objects carry. They are those of earlier versions, so that existing objects keep working. */
import { gatewayGroup } from './object-meta.ts';

/** Label keys. */
export const labels = {
  /** On a slice: the policy it belongs to. */
  policyName: 'spidernet.io/policy-name',
  /** On a Namespace: the gateway of policies that name none. */
  namespaceDefaultGateway: 'spidernet.io/egressgateway-default',
} as const;

/** Finalizers that only the controller takes off. */
export const finalizers = {
  /** On an EgressGateway: kept while policies use it. */
  gateway: `${gatewayGroup}/egressgateway`,
  /** On an EgressTunnel: kept until its addresses and mark are released. */
  tunnel: `${gatewayGroup}/egresstunnel`,
} as const;
