/** Every rule with at least one request that it objects to. The first case of a rule is in the reference page. */
import type { Case } from './case.ts';
import type { Manifest } from './cluster.ts';
import { gatewayCases } from './gateway-cases.ts';
import { policyCases } from './policy-cases.ts';

const tunnel = (mark: string | undefined): Manifest => ({
  apiVersion: 'egressgateway.spidernet.io/v1beta1',
  kind: 'EgressTunnel',
  metadata: { name: 'n1' },
  status: mark === undefined ? {} : { mark },
});

const guardCases: readonly Case[] = [
  {
    rule: 'cluster-info-kept',
    title: 'deleting the cluster info',
    object: {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressClusterInfo',
      metadata: { name: 'default' },
    },
    operation: 'delete',
    reason: 'ClusterInfoKept',
    message: 'metadata.name: "default" cannot be deleted. Edit it instead.',
  },
  {
    rule: 'tunnel-mark-kept',
    title: 'taking a mark away',
    object: tunnel(undefined),
    operation: 'status',
    reason: 'Forbidden',
    message:
      'status.mark: 0x26d9b700 must stay: it is made from the node name, and other nodes send by it. Delete the EgressTunnel to have it made anew.',
  },
  {
    rule: 'status-by-hand',
    title: 'an EIP moved in the status, as an older egctl does',
    object: {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressGateway',
      metadata: { name: 'edge' },
      status: { nodeList: [{ name: 'n1', eips: [{ ipv4: '10.6.1.2', ipv6: 'fd00:6::2' }] }] },
    },
    operation: 'status',
    message:
      'status: The controller writes the status, and undoes what is changed by hand. To move an EIP, use egctl vip move of Sallyport, or write EIP=NODE into the annotation egressgateway.spidernet.io/move-eips of the gateway.',
  },
  {
    rule: 'slice-by-hand',
    title: 'a slice written by hand',
    object: {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressEndpointSlice',
      metadata: { name: 'by-hand', namespace: 'shop' },
      endpoints: [],
    },
    message: 'endpoints: The controller writes slices from policies and pods, and undoes what is changed by hand.',
  },
];

/** All cases, in the order of the rules. */
export const cases: readonly Case[] = [...gatewayCases, ...policyCases, ...guardCases];
