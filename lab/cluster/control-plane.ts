import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { lastLines } from '../host/command.ts';
import { LabFailure } from '../host/failure.ts';
import { isRunning, type ProcessId } from '../host/processes.ts';
import { until } from '../host/wait.ts';
import type { Programs } from '../setup/go-build.ts';
import { type PkiFiles, pkiFiles } from './pki.ts';
import { addresses, type Family, ports } from './shape.ts';

/** The flags of the control-plane programs: all real, all with their own defaults where nothing here says otherwise. */
export const controlPlaneParts = ['etcd', 'kube-apiserver', 'kube-scheduler', 'kube-controller-manager'] as const;
export type ControlPlanePart = (typeof controlPlaneParts)[number];

/** Where a control plane listens and keeps its data. */
export interface ControlPlaneSite {
  readonly programs: Programs;
  readonly pki: PkiFiles;
  readonly folder: string;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
  readonly apiPort: number;
  /** The address that goes into the Service `kubernetes`; undefined: loopback only, no such endpoint. */
  readonly advertise: string | undefined;
  /** Of pods and Services; the first is that of the Service `kubernetes`. */
  readonly families: readonly Family[];
}

/** The site of a lab's control plane: everything follows from its folder. */
export function labSite(folder: string, programs: Programs, families: readonly Family[]): ControlPlaneSite {
  const [first = 'ipv4'] = families;
  return {
    programs,
    pki: pkiFiles(join(folder, 'pki')),
    folder,
    etcdPort: 2379,
    etcdPeerPort: 2380,
    apiPort: ports.apiServer,
    advertise: addresses.controlPlane[first],
    families,
  };
}

/** The command line of one part. */
export function commandOf(part: ControlPlanePart, site: ControlPlaneSite): string[] {
  return [site.programs.kube(part), ...flagsOf(part, site)];
}

function flagsOf(part: ControlPlanePart, site: ControlPlaneSite): string[] {
  const { pki } = site;
  const networks = (network: Readonly<Record<Family, string>>) => site.families.map((one) => network[one]).join(',');
  const serviceNetworks = networks(addresses.serviceNetwork);
  const client = (name: string) => [
    `--kubeconfig=${pki.kubeconfig(name)}`,
    `--authentication-kubeconfig=${pki.kubeconfig(name)}`,
    `--authorization-kubeconfig=${pki.kubeconfig(name)}`,
    '--leader-elect=false',
  ];
  const etcdUrl = `http://127.0.0.1:${site.etcdPort}`;
  const etcdPeerUrl = `http://127.0.0.1:${site.etcdPeerPort}`;
  switch (part) {
    case 'etcd':
      return [
        `--data-dir=${join(site.folder, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${etcdPeerUrl}`,
        `--initial-advertise-peer-urls=${etcdPeerUrl}`,
        `--initial-cluster=default=${etcdPeerUrl}`,
        // A lab may lose its data with the machine; it must not wait for the disk. A killed etcd loses nothing by it.
        '--unsafe-no-fsync',
        `--quota-backend-bytes=${512 * 1024 * 1024}`,
        '--log-level=warn',
      ];
    case 'kube-apiserver':
      return [
        `--etcd-servers=${etcdUrl}`,
        `--service-cluster-ip-range=${serviceNetworks}`,
        '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
        `--service-account-key-file=${join(pki.folder, 'service-accounts.pub')}`,
        `--service-account-signing-key-file=${join(pki.folder, 'service-accounts.key')}`,
        `--secure-port=${site.apiPort}`,
        ...(site.advertise === undefined
          ? ['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', '--endpoint-reconciler-type=none']
          : ['--bind-address=::', `--advertise-address=${site.advertise}`]),
        `--tls-cert-file=${pki.certificate('kube-apiserver')}`,
        `--tls-private-key-file=${pki.key('kube-apiserver')}`,
        `--client-ca-file=${pki.certificate('ca')}`,
        '--authorization-mode=Node,RBAC',
        '--enable-admission-plugins=NodeRestriction',
        '--allow-privileged=true',
        // There is no kube-proxy beside the API server: it reaches webhooks at their endpoints, not at the Service.
        '--enable-aggregator-routing=true',
        `--kubelet-client-certificate=${pki.certificate('kubelet-client')}`,
        `--kubelet-client-key=${pki.key('kubelet-client')}`,
        `--kubelet-certificate-authority=${pki.certificate('ca')}`,
        '--kubelet-preferred-address-types=InternalIP',
        `--requestheader-client-ca-file=${pki.certificate('ca')}`,
        '--requestheader-allowed-names=front-proxy-client',
        '--requestheader-username-headers=X-Remote-User',
        '--requestheader-group-headers=X-Remote-Group',
        '--requestheader-extra-headers-prefix=X-Remote-Extra-',
        `--proxy-client-cert-file=${pki.certificate('front-proxy')}`,
        `--proxy-client-key-file=${pki.key('front-proxy')}`,
      ];
    case 'kube-scheduler':
      return client('kube-scheduler');
    case 'kube-controller-manager':
      return [
        ...client('kube-controller-manager'),
        `--service-account-private-key-file=${join(pki.folder, 'service-accounts.key')}`,
        `--root-ca-file=${pki.certificate('ca')}`,
        '--use-service-account-credentials',
        '--allocate-node-cidrs',
        `--cluster-cidr=${networks(addresses.podNetwork)}`,
        `--service-cluster-ip-range=${serviceNetworks}`,
        // A dead node is NotReady after 5 s instead of 40 s, so that tests of node loss are short.
        '--node-monitor-period=1s',
        '--node-monitor-grace-period=5s',
        `--cluster-signing-cert-file=${pki.certificate('ca')}`,
        `--cluster-signing-key-file=${pki.key('ca')}`,
      ];
  }
}

/** Waits until the API server says it is ready; a program that died is noticed at once and its log shown. */
export async function untilApiReady(wait: {
  readonly pki: PkiFiles;
  readonly port: number;
  readonly limitMs: number;
  readonly process: ProcessId;
  readonly logFile: string;
}): Promise<void> {
  const tls = {
    ca: readFileSync(wait.pki.certificate('ca')),
    cert: readFileSync(wait.pki.certificate('admin')),
    key: readFileSync(wait.pki.key('admin')),
  };
  const explain = () => lastLines(readFileSync(wait.logFile, 'utf8')) || 'its log is empty';
  let died = false;
  await until({ what: 'the API server to be ready', limitMs: wait.limitMs, explain }, () => {
    died = !isRunning(wait.process);
    return died || isReady(wait.port, tls);
  });
  if (died) await until({ what: 'the API server, which ended at once', limitMs: 0, explain }, () => false);
}

/**
 * Waits until etcd answers. An API server that starts before ends after 20 s, and says nothing about why etcd was not there:
 * on a busy machine it starts too late, and it ends at once where its port is taken.
 */
export async function untilEtcdReady(wait: {
  readonly port: number;
  readonly process: ProcessId;
  readonly logFile: string;
}): Promise<void> {
  const explain = () => lastLines(readFileSync(wait.logFile, 'utf8')) || 'its log is empty';
  const state = await until({ what: 'etcd to be healthy', limitMs: 60_000, explain }, async () => {
    if (!isRunning(wait.process)) return 'ended';
    return (await fetch(`http://127.0.0.1:${wait.port}/health`)).ok && 'healthy';
  });
  if (state === 'ended') throw new LabFailure('etcd ended at once', explain());
}

function isReady(port: number, tls: { ca: Buffer; cert: Buffer; key: Buffer }): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/readyz', timeout: 2_000, agent: false, ...tls };
    const probe = request(options, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200));
      response.on('error', reject);
    });
    probe.on('timeout', () => probe.destroy(new Error('no answer within 2 s')));
    probe.on('error', reject);
    probe.end();
  });
}
