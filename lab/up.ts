import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ControlPlanePart,
  type ControlPlaneSite,
  commandOf,
  labSite,
  untilApiReady,
} from './cluster/control-plane.ts';
import { baseManifests } from './cluster/manifests.ts';
import { startNode, wireNode, writeNodeFiles } from './cluster/node.ts';
import { createPki, type PkiFiles, writeClient, writeKubeconfig, writeServer } from './cluster/pki.ts';
import { addresses, type LabShape, ports, urlHost } from './cluster/shape.ts';
import { takeDown } from './down.ts';
import { lastLines, must } from './host/command.ts';
import { BadInput, LabFailure } from './host/failure.ts';
import { claim, type Instance, stateOf, updateRecord } from './host/instance.ts';
import { labMark, type ProcessId, startDaemon } from './host/processes.ts';
import type { Progress } from './host/progress.ts';
import { until } from './host/wait.ts';
import { writeBaseImages } from './images.ts';
import { addFabric, addMember, addOutside, addRoutes, controlPlane, inNamespace, outside } from './net/fabric.ts';
import { namespacePath } from './net/namespaces.ts';
import { outsideCorefile, writeOutsideNames } from './outside/dns.ts';
import type { Programs } from './setup/go-build.ts';

export interface UpRequest {
  readonly instance: Instance;
  readonly shape: LabShape;
  readonly programs: Programs;
  /** The lab lives only as long as this process. */
  readonly owner?: ProcessId;
  readonly progress: Progress;
}

/** Brings a lab up and returns when its nodes and its DNS are ready. If that fails, nothing of it is left behind. */
export async function bringUp(request: UpRequest): Promise<void> {
  const { instance, progress, shape } = request;
  if (!claim(instance, shape, request.owner)) {
    requireFree(instance);
    throw new LabFailure(
      `the folder of lab "${instance.name}" is in the way; run bin/lab down --name ${instance.name}`,
    );
  }
  try {
    await progress.step('namespaces, cables and certificates', () => prepare(request));
    const site = labSite(instance.folder, request.programs, shape.families);
    await progress.step('control plane and outside world', () => startControlPlane(request, site));
    await progress.step(`${shape.nodes.length} nodes and DNS`, () => startNodes(request, site));
    updateRecord(instance, () => ({ phase: 'up' }));
  } catch (error) {
    await takeDown(instance);
    throw error;
  }
}

/** The file of outside names that can be changed; see outside/dns.ts. */
export function outsideNamesFile(instance: Instance): string {
  return join(instance.folder, 'outside.names');
}

/** The certificate of the authority that outside web sites have theirs from. */
export function outsideAuthorityFile(instance: Instance): string {
  return join(instance.folder, 'outside-ca.crt');
}

/** Path of the kubeconfig that works from the machine's own namespace. */
export function kubeconfigOf(instance: Instance): string {
  return join(instance.folder, 'kubeconfig');
}

/** kubectl as administrator of a lab. What it learns about the API is kept in the lab's folder, not in the user's home. */
export function kubectlOf(instance: Instance, programs: Programs): string[] {
  const cache = join(instance.folder, 'kubectl-cache');
  return [programs.kubectl, '--kubeconfig', kubeconfigOf(instance), '--cache-dir', cache];
}

/** Throws if a lab of that name is up or being worked on; a stale one is no hindrance. */
export function requireFree(instance: Instance): void {
  const { name } = instance;
  const state = stateOf(instance);
  if (state === 'busy') {
    throw new BadInput(`another command is at work on lab "${name}"; wait for it or choose another --name`);
  }
  if (state === 'up') {
    throw new BadInput(`lab "${name}" is up already; run bin/lab down --name ${name} first or choose another --name`);
  }
}

async function prepare({ instance, shape, programs }: UpRequest): Promise<void> {
  await addFabric(instance);
  const { families } = shape;
  const [first = 'ipv4'] = families;
  const clusterServer = `https://${urlHost(addresses.controlPlane[first])}:${ports.apiServer}`;
  await addOutside(instance, families);
  await addMember(instance, controlPlane, families);
  await addRoutes(instance, controlPlane, shape);
  for (const node of shape.nodes) await wireNode(instance, node, shape);
  const pki = await createPki(join(instance.folder, 'pki'));
  await writeServer(pki, 'kube-apiserver', {
    dnsNames: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
    ipAddresses: ['127.0.0.1', ...[addresses.controlPlane, addresses.kubernetesService].flatMap(Object.values<string>)],
  });
  const users: Record<string, { commonName: string; organizations?: string[] }> = {
    admin: { commonName: 'admin', organizations: ['system:masters'] },
    'kubelet-client': { commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] },
    'front-proxy': { commonName: 'front-proxy-client' },
    'kube-scheduler': { commonName: 'system:kube-scheduler' },
    'kube-controller-manager': { commonName: 'system:kube-controller-manager' },
    'kube-proxy': { commonName: 'system:kube-proxy' },
  };
  for (const [name, user] of Object.entries(users)) await writeClient(pki, name, user, clusterServer);
  for (const node of shape.nodes) {
    await writeNodeFiles({ instance, node, pki, programs, families, apiServer: clusterServer });
  }
  writeBaseImages(instance, programs);
  mkdirSync(join(instance.folder, 'etcd'), { mode: 0o700 });
}

async function startControlPlane(request: UpRequest, site: ControlPlaneSite): Promise<void> {
  const { instance, programs } = request;
  // The outside world first: a resolver that does not answer yet would cost others seconds.
  startOutside(instance, programs);
  startPart(instance, 'etcd', site);
  const process = startPart(instance, 'kube-apiserver', site);
  const port = await startRelay(instance, programs, site.pki);
  const logFile = logOf(instance, 'kube-apiserver');
  await untilApiReady({ pki: site.pki, port, limitMs: 90_000, process, logFile });
  // The controller manager ends if the API server is not healthy when it starts.
  startPart(instance, 'kube-controller-manager', site);
  startPart(instance, 'kube-scheduler', site);
}

async function startNodes(request: UpRequest, site: ControlPlaneSite): Promise<void> {
  const { instance, programs, shape } = request;
  const kubectl = (what: string, args: readonly string[], input = '') =>
    must(what, [...kubectlOf(instance, programs), ...args], { input, timeoutMs: 240_000 });
  const list = { apiVersion: 'v1', kind: 'List', items: baseManifests(shape) };
  await kubectl('apply the base manifests', ['apply', '--server-side', '-f', '-'], JSON.stringify(list));
  for (const node of shape.nodes) {
    const started = startNode(instance, node, programs, site);
    updateRecord(instance, (record) => ({
      processes: { ...record.processes, ...started },
      power: { ...record.power, [node.name]: 'on' },
    }));
  }
  if (shape.nodes.length === 0) return;
  await kubectl('wait for nodes', ['wait', '--for=condition=Ready', 'node', '--all', '--timeout=180s']);
  // A pod made before its service account is refused: whoever uses the lab should not have to know that.
  await kubectl('wait for service accounts', ['wait', '--for=create', 'serviceaccount/default', '--timeout=180s']);
  const rollout = ['-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=180s'];
  await kubectl('wait for DNS', rollout);
}

/** Starts one part of the control plane; also used to start one again that was killed. */
export function startPart(instance: Instance, part: ControlPlanePart, site: ControlPlaneSite): ProcessId {
  return startMember(instance, controlPlane.name, part, commandOf(part, site));
}

function startOutside(instance: Instance, programs: Programs): void {
  const corefile = join(instance.folder, 'outside.Corefile');
  writeOutsideNames(outsideNamesFile(instance), {});
  writeFileSync(corefile, outsideCorefile(outsideNamesFile(instance)));
  startMember(instance, outside.name, 'outside-dns', [programs.coredns, '-conf', corefile]);
  const server = [process.execPath, join(import.meta.dirname, 'outside', 'main.ts'), outsideAuthorityFile(instance)];
  startMember(instance, outside.name, 'outside-server', server);
}

/** Lets programs of the machine's own namespace reach the API server, through one loopback port. */
async function startRelay(instance: Instance, programs: Programs, pki: PkiFiles): Promise<number> {
  const dial = `127.0.0.1:${ports.apiServer}`;
  const netns = namespacePath(instance, controlPlane.name);
  const argv = [programs.shim, 'relay', '-listen', '127.0.0.1:0', '-netns', netns, '-dial', dial];
  const logFile = logOf(instance, 'relay');
  const relay = startDaemon({ argv, env: { [labMark]: instance.name }, logFile });
  updateRecord(instance, (record) => ({ processes: { ...record.processes, relay } }));
  const port = await until({ what: 'the relay to listen', limitMs: 10_000, everyMs: 10 }, () => {
    const [, text] = /listening 127\.0\.0\.1:(\d+)/.exec(readFileSync(logFile, 'utf8')) ?? [];
    return text === undefined ? undefined : Number(text);
  }).catch((cause: unknown) => {
    throw new LabFailure('the relay to the API server did not start', lastLines(readFileSync(logFile, 'utf8')), {
      cause,
    });
  });
  updateRecord(instance, () => ({ relay: { port } }));
  writeKubeconfig(pki, 'admin', kubeconfigOf(instance), `https://127.0.0.1:${port}`);
  return port;
}

function startMember(instance: Instance, member: string, program: string, argv: readonly string[]): ProcessId {
  const logFile = logOf(instance, program);
  const started = startDaemon({
    argv: inNamespace(instance, member, argv),
    env: { [labMark]: instance.name },
    logFile,
  });
  updateRecord(instance, (record) => ({ processes: { ...record.processes, [program]: started } }));
  return started;
}

function logOf(instance: Instance, program: string): string {
  return join(instance.folder, `${program}.log`);
}
