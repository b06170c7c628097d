/**
 * A cluster for tests of the controller: a real API server, Nodes that are plain objects, agents that are played by the
 * test, and `bin/sallyport controller` as real processes.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { installCrds } from '../../lab/crds.ts';
import type { Condition } from '../../src/api/condition.ts';
import { type KindName, type ObjectOf, resourceOf } from '../../src/api/kinds.ts';
import type { PolicyStatus } from '../../src/api/policy.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { coreResource, type KubeObject, type ObjectRef, type Resource } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { leads, type RunningController, startControllerProcess } from './controller-process.ts';

export const nodes = coreResource('nodes', 'Node', false);
export const namespaces = coreResource('namespaces', 'Namespace', false);
export const events: Resource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
};
export const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** The parts of a gateway that tests choose. */
export interface GatewayWish {
  readonly ipv4?: readonly string[];
  readonly ipv6?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly policy?: string;
  readonly limit?: number;
  readonly default4?: string;
  readonly clusterDefault?: boolean;
  readonly eipLimit?: number;
  readonly allowedNamespaces?: object;
}

/** The parts of a policy that tests choose. A key without a namespace is a cluster policy. */
export interface PolicyWish {
  readonly gateway?: string;
  readonly allocator?: 'default' | 'rr' | 'random' | 'limit';
  readonly ipv4?: string;
  readonly useNodeIP?: boolean;
  readonly priority?: number;
  readonly onUnavailable?: 'Drop' | 'NodeIP';
}

/** The test's cluster. Stop it at the end. */
export class World {
  readonly plane: BareControlPlane;
  readonly client: KubeClient;
  /** All controllers that ever were, for those who want to know what they said. */
  readonly started: RunningController[] = [];
  readonly #controllers: RunningController[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'sallyport-e2e-'));

  private constructor(plane: BareControlPlane, client: KubeClient) {
    this.plane = plane;
    this.client = client;
  }

  /** Starts an API server that knows our kinds. */
  static async start(): Promise<World> {
    const plane = await startBareControlPlane();
    const access = await loadAccess({ path: plane.kubeconfig });
    const rateLimit = { perSecond: 2_000, burst: 2_000 };
    const client = createKubeClient({ access, userAgent: 'e2e', clock: systemClock, random: Math.random, rateLimit });
    const world = new World(plane, client);
    await installCrds(client);
    await world.namespace('sallyport');
    await world.namespace('default');
    return world;
  }

  /** Starts a controller and resolves when it is ready. */
  async controller(...flags: readonly string[]): Promise<RunningController> {
    const controller = await this.startController(...flags);
    await eventually(
      'the controller is ready',
      async () => (await controller.page('/readyz')).endsWith('ok\n'),
      60_000,
    );
    return controller;
  }

  /** Starts the only controller and resolves when it leads and has looked at everything that it found. */
  async leader(...flags: readonly string[]): Promise<RunningController> {
    const controller = await this.controller(...flags);
    // Who does not lead is ready too: only from here on does ready mean that the work is done.
    await eventually('the controller leads', () => leads(controller), 60_000);
    await eventually('the leader is ready', async () => (await controller.page('/readyz')).endsWith('ok\n'), 60_000);
    return controller;
  }

  /** Starts a controller and resolves when it listens. */
  async startController(...flags: readonly string[]): Promise<RunningController> {
    const controller = await startControllerProcess(this.plane.kubeconfig, flags);
    this.#controllers.push(controller);
    this.started.push(controller);
    return controller;
  }

  /** Ends every controller that a test has left running, so that the next one finds the lease free. */
  async endControllers(): Promise<void> {
    await Promise.all(this.#controllers.splice(0).map((controller) => controller.end('SIGTERM')));
  }

  /** Ends every controller and the API server. */
  async stop(): Promise<void> {
    await Promise.all(this.#controllers.map((controller) => controller.end('SIGKILL')));
    await this.client.close();
    await this.plane.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** Writes a configuration file for controllers and returns its path; a second call replaces the first. */
  config(feature: object): string {
    const path = join(this.#folder, 'config.yaml');
    writeFileSync(path, stringify({ feature }));
    return path;
  }

  async namespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.client.apply(namespaces, { metadata: { name, labels } }, { fieldManager: 'e2e' });
  }

  /** Makes a node that is ready, or changes it. */
  async node(name: string, options: { labels?: Record<string, string>; isReady?: boolean; ip?: string } = {}) {
    const { labels = { egress: 'yes' }, isReady = true, ip } = options;
    const number = Number(/\d+$/.exec(name)?.[0] ?? 0);
    await this.client.apply(nodes, { metadata: { name, labels } }, { fieldManager: 'e2e' });
    const status = {
      addresses: [{ type: 'InternalIP', address: ip ?? `192.0.2.${number}` }],
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', reason: 'Test', message: '' }],
    };
    const object = { metadata: { name }, status };
    await this.client.applyStatus(nodes, object, { fieldManager: 'e2e' });
  }

  /** Plays the agent of a node: waits for its tunnel and reports that the device is up. */
  async agent(node: string, status: object = {}): Promise<void> {
    await eventually(`node ${node} has a tunnel address`, async () => {
      const tunnel = await this.get('EgressTunnel', node);
      return Boolean(tunnel?.status?.tunnel?.mac);
    });
    const object = { metadata: { name: node }, status: { tunnel: { parent: { name: 'eth0' } }, ...status } };
    await this.client.applyStatus(resourceOf('EgressTunnel'), object, { fieldManager: 'e2e-agent' });
  }

  /** Makes nodes `prefix1` to `prefixN` with agents, and waits until all are ready. */
  async gatewayNodes(
    prefix: string,
    count: number,
    labels: Record<string, string> = { egress: 'yes' },
  ): Promise<string[]> {
    const names = Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
    await Promise.all(names.map((name) => this.node(name, { labels })));
    await Promise.all(names.map((name) => this.agent(name)));
    await eventually('all tunnels are ready', async () => {
      const tunnels = await Promise.all(names.map((name) => this.get('EgressTunnel', name)));
      return tunnels.every((tunnel) => tunnel?.status?.phase === 'Ready');
    });
    return names;
  }

  async gateway(name: string, wish: GatewayWish): Promise<void> {
    const { ipv4, ipv6, labels = { egress: 'yes' }, policy, limit, default4, clusterDefault } = wish;
    const { eipLimit, allowedNamespaces } = wish;
    const spec = {
      ippools: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }), ...(default4 && { ipv4DefaultEIP: default4 }) },
      nodeSelector: { selector: { matchLabels: labels }, ...(policy && { policy }), ...(limit && { limit }) },
      ...(clusterDefault && { clusterDefault }),
      ...(eipLimit && { eipLimit }),
      ...(allowedNamespaces && { allowedNamespaces }),
    };
    await this.#apply('EgressGateway', { name }, spec);
  }

  async policy(key: string, wish: PolicyWish): Promise<void> {
    const { gateway, allocator, ipv4, useNodeIP, priority, onUnavailable } = wish;
    const spec = {
      ...(gateway && { egressGatewayName: gateway }),
      egressIP: {
        ...(allocator && { allocatorPolicy: allocator }),
        ...(ipv4 && { ipv4 }),
        ...(useNodeIP && { useNodeIP }),
      },
      appliedTo: { podSelector: { matchLabels: { app: key.replaceAll('/', '-') } } },
      ...(priority !== undefined && { priority }),
      ...(onUnavailable && { onUnavailable }),
    };
    await this.#apply(policyKindOf(key), policyRef(key), spec);
  }

  /** The status of a policy; undefined when it has none or does not exist. */
  async policyStatus(key: string) {
    // Both policy kinds have the same status, which the server has checked.
    const policy = await this.client.get<KubeObject & { status?: PolicyStatus }>(
      resourceOf(policyKindOf(key)),
      policyRef(key),
    );
    return policy?.status;
  }

  async deletePolicy(key: string): Promise<void> {
    await this.client.delete(resourceOf(policyKindOf(key)), policyRef(key));
  }

  async get<Kind extends KindName>(kind: Kind, name: string): Promise<ObjectOf<Kind> | undefined> {
    // The server checks objects against the schema that the type comes from.
    return (await this.client.get(resourceOf(kind), { name })) as ObjectOf<Kind> | undefined;
  }

  async list<Kind extends KindName>(kind: Kind): Promise<ObjectOf<Kind>[]> {
    const objects: ObjectOf<Kind>[] = [];
    for await (const page of this.client.list(resourceOf(kind)))
      objects.push(...(page.items as unknown as ObjectOf<Kind>[]));
    return objects;
  }

  /** Waits until the views of all gateways show these policies and no others: they come a little later than the policies. */
  async untilGatewaysShow(...policies: readonly string[]): Promise<void> {
    await eventually(`the gateways show ${policies.join(', ')}`, async () => {
      const gateways = await this.list('EgressGateway');
      const shown = gateways.flatMap(({ status }) =>
        (status?.nodeList ?? []).flatMap(({ eips = [] }) => eips.flatMap((eip) => eip.policies ?? [])),
      );
      const keys = shown.map(({ namespace, name }) => (namespace ? `${namespace}/${name}` : name));
      return isDeepStrictEqual(keys.toSorted(), policies.toSorted());
    });
  }

  /** All objects of our kinds by kind and key, with their versions: what a restart must not change. */
  async versions(): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {};
    for (const kind of ['EgressGateway', 'EgressPolicy', 'EgressClusterPolicy', 'EgressTunnel'] as const) {
      for await (const page of this.client.list(resourceOf(kind))) {
        for (const { metadata } of page.items) {
          found[`${kind} ${metadata.namespace ?? ''}/${metadata.name}`] = metadata.resourceVersion ?? '';
        }
      }
    }
    return found;
  }

  /** Notes of the events about an object, with their reasons. */
  async eventsAbout(name: string): Promise<readonly { readonly reason: string; readonly note: string }[]> {
    const found: { reason: string; note: string }[] = [];
    type Event = KubeObject & { reason: string; note: string; regarding: ObjectRef };
    for await (const page of this.client.list<Event>(events)) {
      for (const { regarding, reason, note } of page.items) if (regarding.name === name) found.push({ reason, note });
    }
    return found;
  }

  /** Waits until every policy has an allocated way out, and returns their statuses by key. */
  async allocated(keys: readonly string[], limitMs = 60_000) {
    await eventually(
      `${keys.length} policies are allocated`,
      async () => (await this.#statuses(keys)).every((status) => conditionOf(status, 'Allocated')?.status === 'True'),
      limitMs,
    );
    const statuses = await this.#statuses(keys);
    return new Map(keys.map((key, index) => [key, statuses[index]]));
  }

  #statuses(keys: readonly string[]) {
    return Promise.all(keys.map((key) => this.policyStatus(key)));
  }

  async #apply(kind: KindName, ref: ObjectRef, spec: object): Promise<void> {
    const { name, namespace } = ref;
    const object = { metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, spec };
    await this.client.apply(resourceOf(kind), object, { fieldManager: 'e2e' });
  }
}

/** The part of a status that says with what and through whom a policy leaves. */
export const bindingOf = (status: PolicyStatus | undefined) => ({
  eip: { ipv4: status?.eip?.ipv4, ipv6: status?.eip?.ipv6 },
  node: status?.node,
  slot: status?.slot,
});

/** The condition of a type. */
export const conditionOf = (
  status: { readonly conditions?: readonly Condition[] | undefined } | undefined,
  type: string,
): Condition | undefined => status?.conditions?.find((condition) => condition.type === type);

const policyKindOf = (key: string): 'EgressPolicy' | 'EgressClusterPolicy' =>
  key.includes('/') ? 'EgressPolicy' : 'EgressClusterPolicy';

const policyRef = (key: string): ObjectRef => {
  const [first = '', second] = key.split('/');
  return second === undefined ? { name: first } : { namespace: first, name: second };
};
