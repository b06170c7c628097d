/** Labels and finalizers that objects carry. They are those of earlier versions, so that existing objects keep working. */
import { gatewayGroup, proxyGroup } from './object-meta.ts';

/** Label keys. */
export const labels = {
  /** On a slice: the policy it belongs to. */
  policyName: 'spidernet.io/policy-name',
  /** On a Namespace: the gateway of policies that name none. */
  namespaceDefaultGateway: 'spidernet.io/egressgateway-default',
  /** On everything that the operator makes; the value is `operatorName`. */
  managedBy: 'app.kubernetes.io/managed-by',
  /** On the pods of a proxy, and on what belongs to them: the name of its BCSEgressController. */
  proxy: `${proxyGroup}/controller`,
  /** On the Service of a rule: the name of its BCSEgress. */
  egress: `${proxyGroup}/egress`,
} as const;

/** The value of `labels.managedBy`, and the name under which the operator owns fields. */
export const operatorName = 'sallyport-operator';

/** Annotation keys. */
export const annotations = {
  /** On an EgressGateway: `EIP=NODE`, with commas between. While it is there, these EIPs are on these nodes if they can be. */
  moveEips: `${gatewayGroup}/move-eips`,
  /** On a Node: with the value `true`, its EIPs go to other nodes of their gateways, and it gets no new ones. */
  drain: `${gatewayGroup}/drain`,
} as const;

/** Taint keys. */
export const taints = {
  /** On a Node: whoever makes nodes puts it there, so that no pod starts before the agent of the node is ready. */
  startup: `${gatewayGroup}/agent-not-ready`,
} as const;

/** Finalizers that only the controller or the operator takes off. */
export const finalizers = {
  /** On an EgressGateway: kept while policies use it. */
  gateway: `${gatewayGroup}/egressgateway`,
  /** On an EgressTunnel: kept until its addresses and mark are released. */
  tunnel: `${gatewayGroup}/egresstunnel`,
  /** On a BCSEgress: kept until the proxy no longer serves it. */
  egress: `${proxyGroup}/egress`,
} as const;

/** What agents share in the namespace of the release to agree on the owners of EIPs. */
export const failoverNames = {
  /** Secret: `key`, with which agents seal what they tell each other, and `previous` while it changes. */
  secret: 'sallyport-heartbeat',
  /** Lease: the vote of the API server, where nodes are even in number. */
  lease: 'sallyport-ownership',
} as const;
