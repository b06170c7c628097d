/** The leading half of the operator, an API server in memory, and replicas that answer from it. */
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import type { ProxyReport } from '../../api/proxy-report.ts';
import { projectClusterInfo } from '../../core/project/index.ts';
import { letThrough } from '../../core/proxy/gate.ts';
import { planProxies } from '../../core/proxy/plan.ts';
import { projectEgress } from '../../core/proxy/project.ts';
import { projectProxy } from '../../core/proxy/project-proxy.ts';
import type { EgressView } from '../../core/proxy/view.ts';
import { reportOf } from '../../core/testing/proxies.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import type { EventFacts } from '../../runtime/kube/event-recorder.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import { type KubeObject, type Resource, refOf } from '../../runtime/kube/resource.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import { createOperatorCaches } from '../inputs/caches.ts';
import { Leader } from '../leading.ts';
import { resources } from '../objects/kind.ts';
import { podMarks } from '../objects/proxy-objects.ts';

export const proxyKey = 'bcs-system/egress-controller';
export const configMap = { namespace: 'kube-system', name: 'coredns' };

/** What a status shows, as far as tests look. */
export interface ShownStatus {
  readonly state?: string;
  readonly reason?: string;
  readonly observedGeneration?: number;
  readonly readyReplicas?: number;
  readonly rules?: readonly { readonly name: string; readonly state: string; readonly reason?: string }[];
  readonly references?: readonly { readonly name: string }[];
  readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
}

export class OperatorTestWorld {
  readonly server: TestApiServer;
  readonly events: EventFacts[] = [];
  /** Changes what replicas tell; throwing is silence. */
  alter = (report: ProxyReport): ProxyReport => report;
  /** What the DNS of the cluster answers. */
  readonly names = new Map<string, readonly string[]>();
  #stop: (() => Promise<void>) | undefined;
  #seen: EgressView[] = [];
  #writes = 0;
  readonly #client: KubeClient;

  private constructor(server: TestApiServer) {
    this.server = server;
    const rateLimit = { perSecond: 1_000, burst: 1_000 };
    this.#client = createKubeClient({
      access: server.access,
      userAgent: 'user',
      clock: systemClock,
      random: Math.random,
      rateLimit,
    });
  }

  static async start(): Promise<OperatorTestWorld> {
    const ours = Object.keys(kinds).filter(isKindName).map(resourceOf);
    return new OperatorTestWorld(await startTestApiServer({ resources: [...ours, ...Object.values(resources)] }));
  }

  /** Starts the operator as the leader would, and resolves after its first pass. */
  async operator({ hasDns = false, defaultSpec = {}, defaultProxyKey = proxyKey } = {}): Promise<void> {
    // Polls of two seconds pass in 100 ms.
    const clock = fastClock(20);
    const random = Math.random;
    const log = createLog({ process: 'test', level: 'silent' });
    const client = createKubeClient({
      access: this.server.access,
      userAgent: 'test',
      // The machine's: time limits of calls must not shrink where polls are made to pass faster.
      clock: systemClock,
      random,
      rateLimit: { perSecond: 10_000, burst: 10_000 },
      onRequest: ({ verb, status }) => {
        if (['create', 'patch', 'apply', 'delete', 'update'].includes(verb) && status < 300) this.#writes += 1;
      },
    });
    const dnsConfigMap = hasDns ? configMap : undefined;
    const caches = createOperatorCaches({
      client,
      clock,
      random,
      onProblem: () => {},
      proxyNamespaces: ['bcs-system'],
      dnsConfigMap,
    });
    const leading = new Leader({
      client,
      caches,
      clock,
      log,
      events: { record: (facts) => void this.events.push(facts) },
      hooks: { passed: () => {} },
      settings: {
        proxyNamespaces: ['bcs-system'],
        defaultProxy: { key: defaultProxyKey, spec: defaultSpec },
        reservedNames: ['cluster.local'],
        searchDomains: [],
        operatorNamespace: 'sallyport',
        images: { envoy: 'envoy-image', nginx: 'nginx-image' },
        imagePullPolicy: undefined,
        imagePullSecrets: [],
        serviceAccount: 'sallyport-proxy',
        proxyPageAuth: 'none',
        nameservers: [],
      },
      dns: hasDns ? { configMap, resolve: async (name) => this.names.get(name) ?? [] } : undefined,
      readReport: async () => this.#report(),
    });
    const stop = new AbortController();
    const runs = Promise.all([caches.run(stop.signal), leading.run(stop.signal)]);
    this.#stop = async () => {
      stop.abort();
      await runs;
      await client.close();
    };
    await Promise.race([eventually('the first pass', () => leading.missing().length === 0), runs]);
  }

  async stopOperator(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  async stop(): Promise<void> {
    await this.stopOperator();
    await this.#client.close();
    await this.server.stop();
  }

  /** Successful writes of all operators so far. */
  get writes(): number {
    return this.#writes;
  }

  egress(key: string, rules: object, controller: object = {}): void {
    this.put(resourceOf('BCSEgress'), key, { spec: { controller, rules } });
  }

  /** Deletes as a user does: an object with a finalizer stays until it is released. */
  async remove(resource: Resource, key: string): Promise<void> {
    await this.#client.delete(resource, refOf(key));
  }

  put(resource: Resource, key: string, fields: object, labels: Record<string, string> = {}): void {
    const existing = this.get(resource, key);
    const metadata = { ...(existing?.metadata ?? refOf(key)), labels } as KubeObject['metadata'];
    this.server.put(resource, { ...existing, metadata, ...fields });
  }

  get(resource: Resource, key: string): (KubeObject & { readonly [field: string]: unknown }) | undefined {
    const { namespace, name } = refOf(key);
    return this.server
      .list(resource)
      .find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  }

  status(key: string, kind: 'BCSEgress' | 'BCSEgressController' = 'BCSEgress'): ShownStatus | undefined {
    // Written by the operator; the API server in memory does not judge it.
    return this.get(resourceOf(kind), key)?.status as ShownStatus | undefined;
  }

  async until(key: string, state: string): Promise<ShownStatus> {
    await eventually(`${key} is ${state}`, () => this.status(key)?.state === state).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(this.status(key))}`);
    });
    return this.status(key) ?? {};
  }

  /** A ready pod of a proxy. */
  pod(name: string, ip = '10.244.1.1', proxy = proxyKey): void {
    this.#pod(name, { podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] }, proxy);
  }

  /** A pod of the proxy that is not ready, with what Kubernetes says about it. */
  unreadyPod(name: string, status: object): void {
    this.#pod(name, status, proxyKey);
  }

  #pod(name: string, status: object, proxy: string): void {
    const { namespace = '', name: proxyName } = refOf(proxy);
    this.put(
      resources.pods,
      `${namespace}/${name}`,
      { spec: { nodeName: 'node-1' }, status },
      { ...podMarks(proxyName) },
    );
  }

  #report(): ProxyReport {
    this.#seen = letThrough(this.#seen, this.server.list(resourceOf('BCSEgress')).map(projectEgress));
    const plan = planProxies({
      egresses: this.#seen,
      proxies: this.server.list(resourceOf('BCSEgressController')).map(projectProxy),
      namespaces: new Map(),
      ranges: projectClusterInfo(undefined),
      reservedNames: ['cluster.local'],
    });
    return this.alter(reportOf(plan, proxyKey));
  }
}
