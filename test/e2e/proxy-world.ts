/**
 * A lab with the chart installed and outside web sites, and a way to say: this pod, asking for that host, must be let
 * through by a rule, or refused. Names of the outside live one second, so that tests can change them.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { imageTable } from '../../lab/cluster/node.ts';
import { addresses } from '../../lab/cluster/shape.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { type ClientPod, type PodClient, startClients } from '../../lab/inside/pod-client.ts';
import { install } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import type { BCSEgressStatus } from '../../src/api/bcs-egress.ts';
import type { BCSEgressControllerStatus } from '../../src/api/bcs-egress-controller.ts';

const egressVersion = 'bkbcs.tencent.com/v1alpha1';
const controllerVersion = 'bkbcs.tencent.com/v1';

/** The default proxy would need half a node for each replica. */
const small = ['operator.defaultProxy.resource.cpu=500m', 'operator.defaultProxy.resource.mem=512Mi'];

/** The outside server, in both families: what most names of a test lead to. */
export const outsideServer: readonly string[] = [addresses.outside.ipv4, addresses.outside.ipv6];

/** Who an outside server saw, and what it was asked for. */
export interface Seen {
  readonly address: string;
  readonly port: number;
  readonly host?: string;
  readonly path?: string;
  readonly sni?: string;
}

/** What curl in a pod got. */
export interface Fetched {
  readonly code: number;
  /** Status of the answer to CONNECT, of the last answer otherwise; 0 without one. */
  readonly status: number;
  readonly body: string;
  readonly stderr: string;
}

export class ProxyWorld {
  readonly lab: Lab;
  readonly #clients = new Map<string, PodClient>();
  #names: Readonly<Record<string, readonly string[]>> = {};

  private constructor(lab: Lab) {
    this.lab = lab;
  }

  /** A lab of a gateway and two workers with the chart installed; the proxies resolve names outside. */
  static async start(name: string, set: readonly string[] = []): Promise<ProxyWorld> {
    const lab = await startLab({ name, gateways: 1, workers: 2 });
    try {
      const values = [
        'config.feature.enableIPv6=true',
        `operator.nameservers={${addresses.outside.ipv4}}`,
        ...small,
        ...set,
      ];
      await install({ instance: instanceOf(name), programs: lab.programs, set: values, progress: silent });
      const namespaces = ['hn1', 'shop'];
      await lab.apply(...namespaces.map((each) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: each } })));
      return new ProxyWorld(lab);
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  stop(): Promise<void> {
    return this.lab.down();
  }

  /** Adds names of the outside, or changes them. */
  names(names: Readonly<Record<string, readonly string[]>>): void {
    this.#names = { ...this.#names, ...names };
    this.lab.setOutsideNames(this.#names);
  }

  async clients(...pods: readonly ClientPod[]): Promise<void> {
    for (const client of await startClients(this.lab, pods)) this.#clients.set(client.pod.name, client);
  }

  client(name: string): PodClient {
    const client = this.#clients.get(name);
    assert.ok(client, `client ${name}`);
    return client;
  }

  /** Lets another image name stand for the image of the proxy, as a registry of the user's own would. */
  alias(image: string, engine: 'envoy' | 'nginx'): void {
    const file = imageTable(instanceOf(this.lab.name));
    // lab/images.ts wrote it.
    const table = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    writeFileSync(file, JSON.stringify({ ...table, [image]: table[`sallyport-proxy-${engine}`] }));
  }

  /** Makes a BCSEgressController in bcs-system: small, so that a test can have several. */
  async controller(name: string, spec: object = {}): Promise<void> {
    const modest = { minReplicas: 2, maxReplicas: 2, resource: { cpu: 200, mem: 256 } };
    const metadata = { name, namespace: 'bcs-system' };
    await this.apply({
      apiVersion: controllerVersion,
      kind: 'BCSEgressController',
      metadata,
      spec: { ...modest, ...spec },
    });
  }

  /** Creates or changes the BCSEgress `namespace/name`. */
  async egress(key: string, spec: object): Promise<void> {
    const [namespace, name] = key.split('/');
    await this.apply({ apiVersion: egressVersion, kind: 'BCSEgress', metadata: { namespace, name }, spec });
  }

  /** What admission says against a BCSEgress that must be refused. */
  async refusal(key: string, spec: object): Promise<string> {
    const [namespace, name] = key.split('/');
    const manifest = { apiVersion: egressVersion, kind: 'BCSEgress', metadata: { namespace, name }, spec };
    const args = ['apply', '--server-side', '-f', '-'];
    const { code, stderr } = await this.lab.tryKubectl(args, JSON.stringify(manifest));
    assert.notEqual(code, 0, `${key} was taken`);
    return stderr;
  }

  /** Applies, and tries again for a while: changes are refused until somebody answers admission reviews. */
  async apply(...manifests: readonly object[]): Promise<void> {
    await until({ what: 'manifests to be taken', limitMs: 30_000, everyMs: 300 }, async () => {
      await this.lab.apply(...manifests);
      return true;
    });
  }

  async deleteEgress(key: string): Promise<void> {
    const [namespace = '', name = ''] = key.split('/');
    await this.lab.kubectl(['-n', namespace, 'delete', 'bcsegress', name, '--timeout=180s']);
  }

  async status(key: string): Promise<BCSEgressStatus> {
    return (await this.#get<BCSEgressStatus>('bcsegress', key)) ?? {};
  }

  async controllerStatus(name: string): Promise<BCSEgressControllerStatus> {
    return (await this.#get<BCSEgressControllerStatus>('bcsegresscontroller', `bcs-system/${name}`)) ?? {};
  }

  /** Waits until a BCSEgress is in a state in its present generation; returns the status. */
  async untilState(key: string, state: BCSEgressStatus['state'], limitMs = 60_000): Promise<BCSEgressStatus> {
    return this.untilStatus(key, `be ${state}`, (status) => status.state === state, limitMs);
  }

  /** Waits until the status of the present generation is as wanted; the message shows what it was instead. */
  async untilStatus(
    key: string,
    what: string,
    isWanted: (status: BCSEgressStatus) => boolean,
    limitMs = 60_000,
  ): Promise<BCSEgressStatus> {
    let seen: BCSEgressStatus = {};
    const wait = { what: `${key} to ${what}`, limitMs, everyMs: 200, explain: () => JSON.stringify(seen, null, 1) };
    return await until(wait, async () => {
      const [namespace = '', name = ''] = key.split('/');
      const text = await this.lab.kubectl(['-n', namespace, 'get', 'bcsegress', name, '-o', 'json']);
      const object = JSON.parse(text) as { metadata: { generation: number }; status?: BCSEgressStatus };
      seen = object.status ?? {};
      return seen.observedGeneration === object.metadata.generation && isWanted(seen) ? seen : undefined;
    });
  }

  /** Runs curl in the pod of a client. The authority of outside web sites is trusted. */
  async curl(client: string, ...args: readonly string[]): Promise<Fetched> {
    const write = '\n%{http_connect} %{http_code}';
    const known = ['curl', '-sS', '--max-time', '10', '--cacert', this.lab.outsideAuthority, '-w', write];
    const { code, stdout, stderr } = await this.inPod(client, ...known, ...args);
    const lines = stdout.split('\n');
    const [connect = 0, last = 0] = (lines.pop() ?? '').split(' ').map(Number);
    return { code, status: last === 0 ? connect : last, body: lines.join('\n'), stderr };
  }

  /**
   * The same, of an outside server that must answer. Without any answer it is asked again for a while: kube-proxy hears of a new
   * Service, and a pod of a new name, a moment after the operator. A refusal is an answer.
   */
  async fetch(client: string, ...args: readonly string[]): Promise<Seen> {
    let last: Fetched | undefined;
    const wait = { what: `an answer to curl ${args.join(' ')}`, limitMs: 30_000, explain: () => JSON.stringify(last) };
    const fetched = await until(wait, async () => {
      last = await this.curl(client, ...args);
      return last.status === 0 ? undefined : last;
    });
    assert.equal(fetched.status, 200, `curl ${args.join(' ')}: ${JSON.stringify(fetched)}`);
    return JSON.parse(fetched.body) as Seen;
  }

  /** Who an outside server saw, asked over TCP through a Service of a rule; tried again for a while for the same reason. */
  async source(client: string, host: string, port: number): Promise<string> {
    let last = '';
    const wait = { what: `${host} port ${port} to answer`, limitMs: 30_000, explain: () => last };
    return until(wait, async () => {
      last = await this.client(client).source({ transport: 'tcp', host, port, limitMs: 5_000 });
      return last.startsWith('(') ? undefined : last;
    });
  }

  /** Runs a program in the pod of a client, whatever its exit code. */
  inPod(client: string, ...argv: readonly string[]) {
    const { namespace, name } = this.client(client).pod;
    return this.lab.tryKubectl(['-n', namespace, 'exec', name, '--', ...argv]);
  }

  /** The pods of a proxy that are ready. */
  async proxyPods(controller: string): Promise<readonly ProxyPod[]> {
    const args = ['-n', 'bcs-system', 'get', 'pods', '-o', 'json'];
    const { items } = JSON.parse(await this.lab.kubectl(args)) as { items: Pod[] };
    return items
      .filter(({ metadata }) => metadata.name.startsWith(`${controller}-`) && metadata.deletionTimestamp === undefined)
      .filter(({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
      .map(({ metadata, spec, status }) => ({
        name: metadata.name,
        node: spec.nodeName ?? '',
        ips: (status.podIPs ?? []).map(({ ip }) => ip),
        restarts: (status.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
      }));
  }

  async #get<T>(kind: string, key: string): Promise<T | undefined> {
    const [namespace = '', name = ''] = key.split('/');
    const text = await this.lab.kubectl(['-n', namespace, 'get', kind, name, '-o', 'json']);
    // The server has checked it against the schema of the kind.
    return (JSON.parse(text) as { status?: T }).status;
  }
}

/** A replica of a proxy. */
export interface ProxyPod {
  readonly name: string;
  readonly node: string;
  readonly ips: readonly string[];
  /** How often its containers were started again. */
  readonly restarts: number;
}

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
