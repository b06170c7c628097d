import { addresses, clusterDomain, type Family, type LabShape } from './shape.ts';

/** What every cluster of the lab starts with: its Node objects, the rights of kube-proxy, CoreDNS. */
export function baseManifests(shape: LabShape): object[] {
  const { families } = shape;
  return [...shape.nodes.map((node) => nodeManifest(node, families)), kubeProxyRights, ...coreDns(families)];
}

/**
 * Nodes are made before their kubelets start, so that node N has pod subnet N whatever the order of arrival: the
 * routes between nodes are laid already.
 */
function nodeManifest(node: LabShape['nodes'][number], families: readonly Family[]): object {
  const podCIDRs = families.map((family) => node.podCidr[family]);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: node.name,
      labels: { 'kubernetes.io/hostname': node.name, ...(node.isGateway ? { egress: 'true' } : {}) },
    },
    spec: { podCIDR: podCIDRs[0], podCIDRs },
  };
}

const kubeProxyRights = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'lab:kube-proxy' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:kube-proxy' }],
};

const corefile = (upstream: string) => `.:53 {
  errors
  health :8081
  ready :8181
  kubernetes ${clusterDomain} in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
  prometheus :9153
  forward . ${upstream}
  cache 5
  loop
  reload 2s
}
`;

function coreDns(families: readonly Family[]): object[] {
  const [first = 'ipv4'] = families;
  const clusterIPs = families.map((family) => addresses.clusterDns[family]);
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
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile(addresses.outside[first]) } },
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
        ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
        clusterIP: clusterIPs[0],
        clusterIPs,
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
