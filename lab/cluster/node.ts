import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Instance } from '../host/instance.ts';
import { labMark, nodeMark, type ProcessId, startDaemon } from '../host/processes.ts';
import { addMasquerade, addMember, addRoutes, inNamespace } from '../net/fabric.ts';
import type { Programs } from '../setup/go-build.ts';
import { type Pki, type PkiFiles, writeClient, writeServer } from './pki.ts';
import { addresses, clusterDomain, type Family, type LabNode, type LabShape } from './shape.ts';

/** A node is a namespace with the real kubelet and the real kube-proxy in it. */
export const nodePrograms = ['kubelet', 'kube-proxy'] as const;

/** Makes what the kernel holds of a node: namespace, cable, addresses, routes, masquerade. Empty after a reboot, too. */
export async function wireNode(instance: Instance, node: LabNode, shape: LabShape): Promise<void> {
  await addMember(instance, node, shape.families);
  await addRoutes(instance, node, shape);
  await addMasquerade(instance, node);
}

/** Writes what a node has on its disk: certificates, kubeconfig, CNI and kubelet configuration. */
export async function writeNodeFiles(files: {
  readonly instance: Instance;
  readonly node: LabNode;
  readonly pki: Pki;
  readonly programs: Programs;
  readonly apiServer: string;
  readonly families: readonly Family[];
}): Promise<void> {
  const { instance, node, pki, programs, families } = files;
  const [first = 'ipv4'] = families;
  const ips = families.map((family) => node[family]);
  const folder = nodeFolder(instance, node.name);
  mkdirSync(folder, { recursive: true });
  await writeServer(pki, `kubelet-${node.name}`, { dnsNames: [node.name], ipAddresses: ips });
  const user = { commonName: `system:node:${node.name}`, organizations: ['system:nodes'] };
  await writeClient(pki, `node-${node.name}`, user, files.apiServer);
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${addresses.outside[first]}\n`);
  writeJson(join(folder, 'cni.json'), {
    cniVersion: '0.4.0',
    name: 'lab',
    type: 'ptp',
    // The plugin would masquerade each pod towards pods of other nodes too; the node has one rule for all instead.
    ipMasq: false,
    ipam: {
      type: 'host-local',
      dataDir: join(folder, 'cni'),
      ranges: families.map((family) => [{ subnet: node.podCidr[family] }]),
      routes: families.map((family) => ({ dst: family === 'ipv4' ? '0.0.0.0/0' : '::/0' })),
    },
  });
  writeJson(join(folder, 'kubelet.json'), {
    node: node.name,
    ips,
    dir: folder,
    kubeconfig: pki.kubeconfig(`node-${node.name}`),
    clientCA: pki.certificate('ca'),
    certFile: pki.certificate(`kubelet-${node.name}`),
    keyFile: pki.key(`kubelet-${node.name}`),
    clusterDNS: [addresses.clusterDns[first]],
    clusterDomain,
    resolvConf: join(folder, 'resolv.conf'),
    cniBin: '/usr/lib/cni',
    cniConfig: join(folder, 'cni.json'),
    shim: programs.shim,
    images: imageTable(instance),
    binds: bindsFor([programs.shim, import.meta.dirname, folder]),
  });
}

/** Starts kubelet and kube-proxy of a node. */
export function startNode(
  instance: Instance,
  node: LabNode,
  programs: Programs,
  { pki, families }: { readonly pki: PkiFiles; readonly families: readonly Family[] },
): Record<string, ProcessId> {
  const folder = nodeFolder(instance, node.name);
  const env = { [labMark]: instance.name, [nodeMark]: node.name };
  const argvOf = {
    kubelet: [programs.kube('kubelet'), '-config', join(folder, 'kubelet.json')],
    'kube-proxy': [
      programs.kube('kube-proxy'),
      `--kubeconfig=${pki.kubeconfig('kube-proxy')}`,
      `--hostname-override=${node.name}`,
      `--proxy-mode=${node.proxyMode}`,
      `--cluster-cidr=${families.map((family) => addresses.podNetwork[family]).join(',')}`,
      // Settings of the whole machine that a namespace cannot and should not change.
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-established=0',
      '--conntrack-tcp-timeout-close-wait=0',
      '--healthz-bind-address=127.0.0.1:10256',
      '--metrics-bind-address=127.0.0.1:10249',
    ],
  };
  const started = nodePrograms.map((program): [string, ProcessId] => {
    const argv = inNamespace(instance, node.name, withOwnRun(argvOf[program]));
    const logFile = join(folder, `${program}.log`);
    return [`${node.name}/${program}`, startDaemon({ argv, env, logFile })];
  });
  return Object.fromEntries(started);
}

/** Folder of a node in the instance. */
export function nodeFolder(instance: Instance, node: string): string {
  return join(instance.folder, 'nodes', node);
}

/** The file that maps image names to programs; the runtime reads it for each container. */
export function imageTable(instance: Instance): string {
  return join(instance.folder, 'images.json');
}

/** A machine has a /run of its own: iptables keeps its lock there, and nodes must not wait for each other. */
function withOwnRun(argv: readonly string[]): string[] {
  return ['sh', '-ec', 'mount -t tmpfs -o mode=755 tmpfs /run; exec "$@"', 'sh', ...argv];
}

/** Mount points of the machine, other than its root, that hold one of the paths: the containers' overlay lacks them. */
function bindsFor(paths: readonly string[]): string[] {
  const mountPoints = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.length > 1);
  const holding = paths.flatMap((path) => mountPoints.filter((point) => path.startsWith(`${point}/`)));
  return [...new Set(holding)].sort();
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
