/**
 * A cluster for tests of the operator: a real API server, `bin/sallyport operator` as real processes, and replicas of
 * proxies that are pods on paper with a real report behind them: they plan what the API server holds, as a proxy does.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { installCrds } from '../../lab/crds.ts';
import type { BCSEgressStatus } from '../../src/api/bcs-egress.ts';
import type { BCSEgressControllerStatus } from '../../src/api/bcs-egress-controller.ts';
import { type KindName, resourceOf } from '../../src/api/kinds.ts';
import type { ProxyReport } from '../../src/api/proxy-report.ts';
import { projectClusterInfo } from '../../src/core/project/index.ts';
import { letThrough } from '../../src/core/proxy/gate.ts';
import { planProxies } from '../../src/core/proxy/plan.ts';
import { projectEgress } from '../../src/core/proxy/project.ts';
import { projectProxy } from '../../src/core/proxy/project-proxy.ts';
import { proxyPorts } from '../../src/core/proxy/served.ts';
import type { EgressView } from '../../src/core/proxy/view.ts';
import { reportOf } from '../../src/core/testing/proxies.ts';
import { resources } from '../../src/operator/objects/kind.ts';
import { podMarks } from '../../src/operator/objects/proxy-objects.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { coreResource, type KubeObject, type Resource, refOf } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { enterOwnNamespace } from '../kernel/own-namespace.ts';
import { type RunningController, startControllerProcess } from './controller-process.ts';

export const defaultProxy = 'bcs-system/egress-controller';
const fieldManager = 'e2e';
const serviceAccounts = coreResource('serviceaccounts', 'ServiceAccount', true);

/** A replica of a proxy. */
export interface TestReplica {
  readonly pod: string;
  /** Changes what it tells; the identity when absent. */
  alter(change: (report: ProxyReport) => ProxyReport): void;
  /** Stops to answer, while its pod stays ready. */
  silence(): Promise<void>;
  /** Answers again. */
  speak(): Promise<void>;
}

interface EgressObject extends KubeObject {
  readonly status?: BCSEgressStatus;
}

export class OperatorWorld {
  readonly plane: BareControlPlane;
  readonly client: KubeClient;
  /** All operators that ever were, for those who want to know what they said. */
  readonly started: RunningController[] = [];
  readonly #operators: RunningController[] = [];
  readonly #servers = new Set<Server>();

  private constructor(plane: BareControlPlane, client: KubeClient) {
    this.plane = plane;
    this.client = client;
  }

  /** Puts the test process into a network namespace of its own, so that replicas can have addresses as pods do. */
  static async start(): Promise<OperatorWorld> {
    enterOwnNamespace();
    for (const args of [
      ['address', 'add', '10.61.0.1/32', 'dev', 'lo'],
      ['route', 'add', 'local', '10.61.0.0/16', 'dev', 'lo'],
      // The API server looks for its own address along the default route.
      ['route', 'add', 'default', 'dev', 'lo'],
    ]) {
      execFileSync('ip', args);
    }
    const plane = await startBareControlPlane();
    const access = await loadAccess({ path: plane.kubeconfig });
    const rateLimit = { perSecond: 2_000, burst: 2_000 };
    const client = createKubeClient({ access, userAgent: 'e2e', clock: systemClock, random: Math.random, rateLimit });
    const world = new OperatorWorld(plane, client);
    await installCrds(client);
    for (const name of ['sallyport', 'bcs-system', 'hn1', 'shop']) await world.namespace(name);
    return world;
  }

  /** Ends every operator that a test has left running, so that the next one finds the lease free. */
  async endOperators(): Promise<void> {
    await Promise.all(this.#operators.splice(0).map((operator) => operator.end('SIGTERM')));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#operators.map((operator) => operator.end('SIGKILL')));
    for (const server of this.#servers) server.closeAllConnections();
    await Promise.all([...this.#servers].map((server) => closed(server)));
    await this.client.close();
    await this.plane.stop();
  }

  /** Starts an operator and resolves when it is ready. Names are not published unless a flag says so. */
  async operator(...flags: readonly string[]): Promise<RunningController> {
    const dns = flags.some((flag) => flag.startsWith('--dns')) ? [] : ['--dns=none'];
    const operator = await startControllerProcess(this.plane.kubeconfig, [...dns, ...flags], 'operator');
    this.#operators.push(operator);
    this.started.push(operator);
    await eventually('the operator is ready', async () => (await operator.page('/readyz')).endsWith('ok\n'), 60_000);
    return operator;
  }

  async namespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.client.apply(resources.namespaces, { metadata: { name, labels } }, { fieldManager });
    const account = { metadata: { namespace: name, name: 'default' } };
    await this.client.apply(serviceAccounts, account, { fieldManager });
  }

  /** Makes a BCSEgress, or replaces its spec. */
  async egress(key: string, rules: object, controller?: string): Promise<void> {
    const spec = { rules, ...(controller === undefined ? {} : { controller: refOf(controller) }) };
    await this.apply(resourceOf('BCSEgress'), key, { spec });
  }

  async apply(
    resource: Resource,
    key: string,
    fields: object,
    labels: Record<string, string> = {},
  ): Promise<KubeObject> {
    const { namespace = '', name } = refOf(key);
    return this.client.apply(resource, { metadata: { name, namespace, labels }, ...fields }, { fieldManager });
  }

  async remove(kind: KindName, key: string): Promise<void> {
    await this.client.delete(resourceOf(kind), refOf(key));
  }

  async get<T extends KubeObject>(resource: Resource, key: string): Promise<T | undefined> {
    return this.client.get<T>(resource, refOf(key));
  }

  async egressStatus(key: string): Promise<BCSEgressStatus | undefined> {
    return (await this.get<EgressObject>(resourceOf('BCSEgress'), key))?.status;
  }

  async proxyStatus(key: string): Promise<BCSEgressControllerStatus | undefined> {
    type Proxy = KubeObject & { readonly status?: BCSEgressControllerStatus };
    return (await this.get<Proxy>(resourceOf('BCSEgressController'), key))?.status;
  }

  /** Waits until a BCSEgress is in a state, and returns its status. */
  async until(key: string, state: BCSEgressStatus['state'], limitMs = 30_000): Promise<BCSEgressStatus> {
    let status: BCSEgressStatus | undefined;
    await eventually(
      `BCSEgress ${key} is ${state}`,
      async () => {
        status = await this.egressStatus(key);
        return status?.state === state;
      },
      limitMs,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; its status is ${JSON.stringify(status)}`);
    });
    return status ?? {};
  }

  async untilGone(resource: Resource, key: string, limitMs = 30_000): Promise<void> {
    await eventually(
      `${resource.kind} ${key} is gone`,
      async () => (await this.get(resource, key)) === undefined,
      limitMs,
    );
  }

  async untilThere<T extends KubeObject>(resource: Resource, key: string): Promise<T> {
    await eventually(
      `${resource.kind} ${key} is there`,
      async () => (await this.get(resource, key)) !== undefined,
      30_000,
    );
    const found = await this.get<T>(resource, key);
    if (found === undefined) throw new Error(`${resource.kind} ${key} went at once`);
    return found;
  }

  async list<T extends KubeObject>(resource: Resource): Promise<T[]> {
    const found: T[] = [];
    for await (const page of this.client.list<T>(resource)) found.push(...page.items);
    return found;
  }

  /** Makes a pod of a proxy that is ready, and answers for it on an address of its own, 10.61.x.y. */
  async replica(ip: string, proxy = defaultProxy): Promise<TestReplica> {
    const { namespace = '', name } = refOf(proxy);
    const pod = `${name}-${ip.replaceAll('.', '-')}`;
    await this.#makePod(namespace, pod, ip, podMarks(name));
    let change = (report: ProxyReport): ProxyReport => report;
    let before: EgressView[] = [];
    const report = async (): Promise<ProxyReport> => {
      const [egresses, proxies, namespaces] = await Promise.all([
        this.list(resourceOf('BCSEgress')),
        this.list(resourceOf('BCSEgressController')),
        this.list(resources.namespaces),
      ]);
      before = letThrough(before, egresses.map(projectEgress));
      const labels = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
      const plan = planProxies({
        egresses: before,
        proxies: proxies.map(projectProxy),
        namespaces: labels,
        ranges: projectClusterInfo(undefined),
        reservedNames: ['cluster.local'],
      });
      return change(reportOf(plan, proxy));
    };
    let server = await this.#serve(ip, report);
    return {
      pod,
      alter: (next) => {
        change = next;
      },
      silence: async () => {
        server.closeAllConnections();
        await closed(server);
        this.#servers.delete(server);
      },
      speak: async () => {
        server = await this.#serve(ip, report);
      },
    };
  }

  async #serve(ip: string, report: () => Promise<ProxyReport>): Promise<Server> {
    const server = createServer((_, response) => {
      report().then(
        (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value)),
        () => response.writeHead(503).end(),
      );
    });
    server.listen(proxyPorts.report, ip);
    await once(server, 'listening');
    this.#servers.add(server);
    return server;
  }

  async #makePod(namespace: string, name: string, ip: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const pod: KubeObject & { readonly spec: object } = {
      metadata: { namespace, name, labels },
      // Without a kubelet only a pod without a grace period ever goes.
      spec: { nodeName: 'node-1', terminationGracePeriodSeconds: 0, containers: [{ name: 'proxy', image: 'nothing' }] },
    };
    await this.client.create(resources.pods, pod);
    const status = {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      hostIP: '192.0.2.1',
      hostIPs: [{ ip: '192.0.2.1' }],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    await this.client.patch(
      resources.pods,
      { namespace, name },
      { kind: 'merge', value: { status } },
      { subresource: 'status' },
    );
  }
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });
