/** A small cluster as an API server would serve it, in which everything is fine. Tests change single objects of it. */
import type { ClusterContext, OwnObjects, ServedConfigMap, ServedObject, ServedPod, ServedProgram } from '../read.ts';

const condition = (type: string, reason: string, message: string, status = 'True') => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

/** The same object with another status. */
export const withStatus = <T extends ServedObject>(object: T, change: object): T => ({
  ...object,
  // Every object of this file has a status that is a record.
  status: { ...(object.status as object), ...change },
});

/** A condition that does not hold. */
export const failing = (type: string, reason: string, message: string, status = 'False') =>
  condition(type, reason, message, status);

const names = ['gateway-1', 'gateway-2', 'worker-1'] as const;

const tunnel = (name: string, number: number): ServedObject => ({
  metadata: { name, uid: `uid-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
  status: {
    phase: 'Ready',
    mark: `0x2600${number}000`,
    tunnel: {
      ipv4: `172.31.0.${number}`,
      ipv6: `fd11::${number}`,
      mac: `66:00:00:00:00:0${number}`,
      parent: { name: 'eth0', ipv4: `10.77.0.1${number}`, ipv6: `fd77::1${number}` },
    },
    lastHeartbeatTime: '2026-01-01T00:00:05Z',
    report: { appliedRevision: '100', eips: [], problems: [] },
    conditions: [
      condition('Allocated', 'TunnelAllocated', `Node ${name} has a mark.`),
      condition('Ready', 'TunnelReady', `The tunnel of node ${name} is up.`),
    ],
  },
});

/** The gateway `office` with ten pairs of EIPs. */
export const office: ServedObject = {
  metadata: { name: 'office', uid: 'uid-office', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {
    ippools: { ipv4: ['10.77.0.100-10.77.0.109'], ipv6: ['fd77::100-fd77::109'] },
    nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
  },
  status: {
    nodeList: [
      {
        name: 'gateway-1',
        status: 'Ready',
        eips: [{ ipv4: '10.77.0.100', ipv6: 'fd77::100', policies: [{ name: 'orders', namespace: 'shop' }] }],
      },
      { name: 'gateway-2', status: 'Ready', eips: [] },
    ],
    ipUsage: { ipv4Total: 10, ipv4Free: 9, ipv6Total: 10, ipv6Free: 9 },
    conditions: [
      condition('Accepted', 'Valid', 'Gateway office selects 2 nodes.'),
      condition('Ready', 'NodesReady', '2 of 2 nodes of gateway office are ready.'),
    ],
  },
};

/** The policy `shop/orders`: pods labelled app=orders leave with the first pair. */
export const orders: ServedObject = {
  metadata: {
    name: 'orders',
    namespace: 'shop',
    uid: 'uid-orders',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { egressGatewayName: 'office', appliedTo: { podSelector: { matchLabels: { app: 'orders' } } } },
  status: {
    eip: { ipv4: '10.77.0.100', ipv6: 'fd77::100' },
    node: 'gateway-1',
    slot: 17,
    conditions: [
      condition('Accepted', 'Valid', 'Policy shop/orders uses gateway office.'),
      condition('Allocated', 'EipAllocated', 'Policy shop/orders leaves with 10.77.0.100 and fd77::100.'),
      condition('Programmed', 'KernelsInStep', 'The kernel of every node concerned holds policy shop/orders.'),
    ],
  },
};

/** The objects of Sallyport. */
export const objects: OwnObjects & { readonly clusterInfo: ServedObject } = {
  gateways: [office],
  policies: [orders],
  clusterPolicies: [],
  tunnels: names.map((name, index) => tunnel(name, index + 1)),
  clusterInfo: {
    metadata: { name: 'default', generation: 1 },
    spec: {},
    status: {
      egressIgnoreCIDR: {
        podCIDR: { ipv4: ['10.244.0.0/16'], ipv6: ['fd44::/48'] },
        clusterIP: { ipv4: ['10.96.0.0/12'], ipv6: ['fd96::/108'] },
        nodeIP: { ipv4: ['10.77.0.11', '10.77.0.12', '10.77.0.13'], ipv6: ['fd77::11', 'fd77::12', 'fd77::13'] },
      },
      conditions: [condition('Detected', 'RangesDetected', 'Everything was found.')],
    },
  },
};

/** The controller and the agents. */
export const programs: readonly ServedProgram[] = [
  {
    metadata: { name: 'sallyport-controller', namespace: 'sallyport' },
    spec: { replicas: 2 },
    status: { readyReplicas: 2 },
  },
  {
    metadata: { name: 'sallyport-agent', namespace: 'sallyport' },
    status: { numberReady: 3, desiredNumberScheduled: 3 },
  },
];

/** Nodes, namespaces and the configuration. */
export const surroundings: ClusterContext & { readonly config: ServedConfigMap } = {
  nodes: names.map((name, index) => ({
    metadata: { name, labels: name.startsWith('gateway') ? { egress: 'true' } : {} },
    status: {
      addresses: [
        { type: 'InternalIP', address: `10.77.0.1${index + 1}` },
        { type: 'InternalIP', address: `fd77::1${index + 1}` },
      ],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })),
  namespaces: [{ metadata: { name: 'kube-system', uid: 'uid-of-the-cluster' } }, { metadata: { name: 'shop' } }],
  config: {
    metadata: { name: 'sallyport', namespace: 'sallyport' },
    data: { 'config.yaml': 'feature:\n  enableIPv4: true\n  enableIPv6: true\n' },
  },
};

/** A pod of the Deployment `orders` on worker-1. */
export const pod = (name: string, last = 7, app = 'orders'): ServedPod => ({
  metadata: {
    name,
    namespace: 'shop',
    labels: { app, 'pod-template-hash': '5d8c' },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-5d8c`, uid: 'uid-rs', controller: true },
    ],
  },
  spec: { nodeName: 'worker-1' },
  status: {
    phase: 'Running',
    podIP: `10.244.3.${last}`,
    podIPs: [{ ip: `10.244.3.${last}` }, { ip: `fd44:0:0:3::${last}` }],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
});
