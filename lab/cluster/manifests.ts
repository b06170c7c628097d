import { addresses, clusterDomain, type LabShape } from './shape.ts';

/** What every cluster of the lab starts with: its Node objects, the rights of kube-proxy, CoreDNS. */
export function baseManifests(shape: LabShape): object[] {
  return [...shape.nodes.map(nodeManifest), kubeProxyRights, ...coreDns()];
}

/**
 * Nodes are made before their kubelets start, so that node N has pod subnet N whatever the order of arrival: the
 * routes between nodes are laid already.
 */
function nodeManifest(node: LabShape['nodes'][number]): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: node.name,
      labels: { 'kubernetes.io/hostname': node.name, ...(node.isGateway ? { egress: 'true' } : {}) },
    },
    spec: { podCIDR: node.podCidr.ipv4, podCIDRs: [node.podCidr.ipv4, node.podCidr.ipv6] },
  };
}

const kubeProxyRights = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'lab:kube-proxy' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:kube-proxy' }],
};

const corefile = `.:53 {
  errors
  health :8081
  ready :8181
  kubernetes ${clusterDomain} in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
  prometheus :9153
  forward . ${addresses.outside.ipv4}
  cache 5
  loop
  reload 2s
}
`;

function coreDns(): object[] {
  const namespace = 'kube-system';
  const name = 'coredns';
  const labels = { 'k8s-app': 'kube-dns' };
  const metadata = { name, namespace, labels };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        strategy: { rollingUpdate: { maxUnavailable: 1 } },
        template: { metadata: { labels }, spec: coreDnsPod(labels) },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace, labels },
      spec: {
        selector: labels,
        ipFamilyPolicy: 'RequireDualStack',
        clusterIP: addresses.clusterDns.ipv4,
        clusterIPs: [addresses.clusterDns.ipv4, addresses.clusterDns.ipv6],
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
          { name: 'metrics', port: 9153, protocol: 'TCP' },
        ],
      },
    },
  ];
}

function coreDnsPod(labels: Record<string, string>): object {
  const probe = (path: string, port: number) => ({ httpGet: { path, port }, periodSeconds: 1, failureThreshold: 3 });
  return {
    serviceAccountName: 'coredns',
    dnsPolicy: 'Default',
    // DNS survives the loss of one node.
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 100,
            podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
          },
        ],
      },
    },
    containers: [
      {
        name: 'coredns',
        image: 'coredns',
        args: ['-conf', '/etc/coredns/Corefile'],
        ports: [
          { name: 'dns', containerPort: 53, protocol: 'UDP' },
          { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
        ],
        readinessProbe: probe('/ready', 8181),
        livenessProbe: probe('/health', 8081),
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
        },
        volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
  };
}
