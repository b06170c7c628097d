/** A Pod of about 5 KB with the parts that real ones have, managedFields included. Deterministic. */
import type { KubeObject } from '../../src/runtime/kube/resource.ts';

/** Returns pod number `index`; names, addresses and nodes differ, sizes do not. */
export function makePod(index: number): KubeObject {
  const namespace = `team-${index % 40}`;
  const app = `service-${index % 400}`;
  const hash = (0x10000000 + ((index * 2654435761) % 0x0fffffff)).toString(16);
  const name = `${app}-${hash}-${String(index).padStart(5, '0')}`;
  const ip = `10.${40 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
  const node = `node-${index % 200}.compute.internal`;
  const uid = `3f2b1c00-0000-4000-8000-${String(index).padStart(12, '0')}`;
  const labels = {
    app,
    'app.kubernetes.io/name': app,
    'app.kubernetes.io/version': '1.42.0',
    'app.kubernetes.io/managed-by': 'Helm',
    'pod-template-hash': hash,
    tier: index % 3 === 0 ? 'frontend' : 'backend',
  };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-${hash}`, uid, controller: true };
  const metadata = {
    name,
    namespace,
    generateName: `${app}-${hash}-`,
    uid,
    resourceVersion: '1',
    creationTimestamp: '2026-11-01T08:00:00Z',
    labels,
    annotations: {
      'checksum/config': `${hash}${hash}${hash}${hash}${hash}${hash}${hash}${hash}`,
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': '9102',
    },
    ownerReferences: [{ ...owner, blockOwnerDeletion: true }],
    managedFields: managedFields(uid),
  };
  const spec = {
    nodeName: node,
    serviceAccountName: app,
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
    priority: 0,
    securityContext: { runAsNonRoot: true, fsGroup: 2000 },
    volumes: [
      { name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } },
      {
        name: 'token',
        projected: { sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: 'token' } }], defaultMode: 420 },
      },
    ],
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
    containers: [container(app, 8080), container('sidecar', 9102)],
  };
  const status = {
    phase: 'Running',
    qosClass: 'Burstable',
    hostIP: `192.168.0.${index % 200}`,
    hostIPs: [{ ip: `192.168.0.${index % 200}` }],
    podIP: ip,
    podIPs: [{ ip }, { ip: `fd00:10:${(index >> 8).toString(16)}::${(index & 255).toString(16)}` }],
    startTime: '2026-11-01T08:00:01Z',
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(
      (type) => ({
        type,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: '2026-11-01T08:00:09Z',
      }),
    ),
    containerStatuses: [containerStatus(app, hash), containerStatus('sidecar', hash)],
  };
  const pod = { metadata, spec, status };
  return pod;
}

function container(name: string, port: number): object {
  return {
    name,
    image: `images.example/${name}:1.42.0`,
    imagePullPolicy: 'IfNotPresent',
    ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
      { name: 'LOG_LEVEL', value: 'info' },
      { name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: `${name}-db`, key: 'url' } } },
    ],
    resources: { limits: { memory: '256Mi' }, requests: { cpu: '50m', memory: '128Mi' } },
    volumeMounts: [
      { name: 'config', mountPath: '/etc/config', readOnly: true },
      { name: 'token', mountPath: '/var/run/token', readOnly: true },
    ],
    readinessProbe: { httpGet: { path: '/ready', port, scheme: 'HTTP' }, periodSeconds: 10, timeoutSeconds: 1 },
    livenessProbe: { httpGet: { path: '/live', port, scheme: 'HTTP' }, periodSeconds: 20, timeoutSeconds: 1 },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
}

function containerStatus(name: string, hash: string): object {
  return {
    name,
    ready: true,
    started: true,
    restartCount: 0,
    image: `images.example/${name}:1.42.0`,
    imageID: `images.example/${name}@sha256:${hash.repeat(8)}`,
    containerID: `containerd://${hash.repeat(8)}`,
    state: { running: { startedAt: '2026-11-01T08:00:08Z' } },
    lastState: {},
  };
}

function managedFields(uid: string): object[] {
  const owned = { 'f:generateName': {}, 'f:labels': { '.': {}, 'f:app': {}, 'f:pod-template-hash': {}, 'f:tier': {} } };
  const containers = { 'k:{"name":"main"}': { '.': {}, 'f:env': {}, 'f:image': {}, 'f:ports': {}, 'f:resources': {} } };
  return [
    {
      manager: 'kube-controller-manager',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-11-01T08:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:metadata': { ...owned, [`k:{"uid":"${uid}"}`]: {} }, 'f:spec': { 'f:containers': containers } },
    },
    {
      manager: 'kubelet',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-11-01T08:00:09Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:conditions': {}, 'f:containerStatuses': {}, 'f:podIP': {}, 'f:podIPs': {} } },
      subresource: 'status',
    },
  ];
}
