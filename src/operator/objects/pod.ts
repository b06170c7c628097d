/** The pod of a proxy: one container that needs no rights on its node and nothing of the cluster's DNS. */
import { proxyPorts } from '../../core/proxy/served.ts';
import type { ProxyView } from '../../core/proxy/view.ts';

/** What the operator was told about running proxies. */
export interface PodSettings {
  /** By engine, for BCSEgressControllers that name no image. */
  readonly images: Readonly<Record<ProxyView['engine'], string>>;
  readonly imagePullPolicy: string | undefined;
  readonly imagePullSecrets: readonly string[];
  readonly serviceAccount: string;
  /** Who may read the report and the metrics of a proxy: `token`, or `none` for everybody. */
  readonly proxyPageAuth: 'token' | 'none';
  /** For BCSEgressControllers without nameservers; empty: those of the node. */
  readonly nameservers: readonly string[];
  /** Names of the cluster itself: its domain, and what the administrator reserves. */
  readonly reservedNames: readonly string[];
}

const stateFolder = '/run/sallyport';
/** Who the engine runs as; any number but zero would do. */
const userId = 65532;

/** The spec of the pods of a proxy. `marks` are labels that all of its pods have and no others. */
export const podSpec = (proxy: ProxyView, marks: Readonly<Record<string, string>>, settings: PodSettings): object => {
  const { run, engine, key } = proxy;
  const nameservers = proxy.nameservers.length > 0 ? proxy.nameservers : settings.nameservers;
  return {
    serviceAccountName: settings.serviceAccount,
    automountServiceAccountToken: true,
    ...(settings.imagePullSecrets.length === 0
      ? {}
      : { imagePullSecrets: settings.imagePullSecrets.map((name) => ({ name })) }),
    // Names that are published in the cluster's DNS lead here: a proxy that asked it would connect to itself.
    ...(nameservers.length === 0
      ? { dnsPolicy: 'Default' }
      : { dnsPolicy: 'None', dnsConfig: { nameservers: [...nameservers] } }),
    ...(run.selector === undefined ? {} : { nodeSelector: run.selector }),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      fsGroup: userId,
      seccompProfile: { type: 'RuntimeDefault' },
      // A rule may listen on any port, and no capability is needed for it.
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
    },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: marks },
      },
    ],
    terminationGracePeriodSeconds: 60,
    containers: [
      {
        name: 'proxy',
        image: run.image ?? settings.images[engine],
        ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
        args: [
          'proxy',
          `--controller=${key}`,
          `--engine=${engine}`,
          `--state-folder=${stateFolder}`,
          `--page-auth=${settings.proxyPageAuth}`,
          ...settings.reservedNames.map((name) => `--reserved-name=${name}`),
        ],
        env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }],
        ports: [
          { name: 'report', containerPort: proxyPorts.report, protocol: 'TCP' },
          { name: 'http', containerPort: proxyPorts.http, protocol: 'TCP' },
          { name: 'tls', containerPort: proxyPorts.tls, protocol: 'TCP' },
        ],
        readinessProbe: { httpGet: { path: '/readyz', port: 'report' }, periodSeconds: 2, failureThreshold: 2 },
        livenessProbe: { httpGet: { path: '/livez', port: 'report' }, periodSeconds: 10, failureThreshold: 6 },
        resources: resourcesOf(run.resource),
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [{ name: 'state', mountPath: stateFolder }],
      },
    ],
    volumes: [{ name: 'state', emptyDir: {} }],
  };
};

/** No limits: a proxy that is throttled delays everybody, and one that is killed for memory breaks all its connections. */
const resourcesOf = ({ cpu, mem }: ProxyView['run']['resource']): object => ({
  requests: { cpu: cpuQuantity(cpu), memory: memoryQuantity(mem) },
});

// Written as Kubernetes writes them, so that what comes back is what was sent.
const cpuQuantity = (value: number | string): string => {
  if (typeof value === 'string') return value;
  return value % 1000 === 0 ? String(value / 1000) : `${value}m`;
};
const memoryQuantity = (value: number | string): string => {
  if (typeof value === 'string') return value;
  return value % 1024 === 0 ? `${value / 1024}Gi` : `${value}Mi`;
};
