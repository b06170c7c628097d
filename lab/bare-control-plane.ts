import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type ControlPlaneSite, commandOf, untilApiReady, untilEtcdReady } from './cluster/control-plane.ts';
import { createPki, writeClient, writeKubeconfig, writeServer } from './cluster/pki.ts';
import { families } from './cluster/shape.ts';
import { removeStale } from './down.ts';
import { lastLines } from './host/command.ts';
import { LabFailure } from './host/failure.ts';
import { claim, forget, instanceOf, self, updateRecord } from './host/instance.ts';
import { end, isRunning, labMark, type ProcessId, signal, startDaemon } from './host/processes.ts';
import { silent } from './host/progress.ts';
import { until } from './host/wait.ts';
import { setUp } from './setup/setup.ts';

/** The two programs of a bare control plane. */
export type BarePart = 'etcd' | 'kube-apiserver';

/**
 * A real etcd and a real kube-apiserver on loopback: no nodes, no controllers. For tests of the API and of clients.
 * It dies with the process that started it at the latest when the next lab command runs.
 */
export interface BareControlPlane {
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Path of a kubectl of the same version. */
  readonly kubectl: string;
  /** Process ids, for tests that stop a part by signal. */
  pid(part: BarePart): number;
  /** Kills a part without warning and returns when it is gone. */
  kill(part: BarePart): Promise<void>;
  /** Starts a part that was killed and returns when it is ready. */
  start(part: BarePart): Promise<void>;
  /** Ends both and removes every trace. May be called twice. */
  stop(): Promise<void>;
}

/** Starts a bare control plane on free loopback ports and returns when it is ready (about 4 s). */
export async function startBareControlPlane(options: { log?: (line: string) => void } = {}): Promise<BareControlPlane> {
  const programs = await setUp({ ...silent, line: options.log ?? (() => {}) });
  await removeStale();
  const instance = await claimBare();
  const pki = await createPki(join(instance.folder, 'pki'));
  const site: ControlPlaneSite = {
    programs,
    folder: instance.folder,
    pki,
    etcdPort: await freePort(),
    etcdPeerPort: await freePort(),
    apiPort: await freePort(),
    advertise: undefined,
    families,
  };
  const server = `https://127.0.0.1:${site.apiPort}`;
  await writeServer(pki, 'kube-apiserver', { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
  await writeClient(pki, 'kubelet-client', { commonName: 'kubelet-client' }, server);
  await writeClient(pki, 'front-proxy', { commonName: 'front-proxy-client' }, server);
  await writeClient(pki, 'admin', { commonName: 'admin', organizations: ['system:masters'] }, server);
  const kubeconfig = join(instance.folder, 'kubeconfig');
  writeKubeconfig(pki, 'admin', kubeconfig, server);

  const running = new Map<BarePart, ProcessId>();
  const logFile = (part: BarePart) => join(instance.folder, `${part}.log`);
  const processOf = (part: BarePart): ProcessId => {
    const process = running.get(part);
    if (process === undefined) throw new LabFailure(`${part} was never started`);
    return process;
  };
  const start = async (part: BarePart) => {
    const process = startDaemon({
      argv: commandOf(part, site),
      env: { [labMark]: instance.name },
      logFile: logFile(part),
    });
    running.set(part, process);
    updateRecord(instance, (record) => ({ processes: { ...record.processes, [part]: process } }));
    const started = { process, logFile: logFile(part) };
    if (part === 'etcd') await untilEtcdReady({ ...started, port: site.etcdPort });
    else await untilApiReady({ ...started, pki, port: site.apiPort, limitMs: 60_000 });
  };
  const stop = async () => {
    // The API server first: one whose etcd is gone does not end on SIGTERM.
    for (const part of ['kube-apiserver', 'etcd'] as const) {
      const process = running.get(part);
      if (process !== undefined) await end([process], 0);
    }
    forget(instance);
  };
  try {
    await start('etcd');
    await start('kube-apiserver');
    updateRecord(instance, () => ({ phase: 'up' }));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kubeconfig,
    kubectl: programs.kubectl,
    pid: (part) => processOf(part).pid,
    kill: async (part) => {
      signal(processOf(part), 'SIGKILL');
      const explain = () => lastLines(readFileSync(logFile(part), 'utf8'));
      await until(
        { what: `${part} to be gone`, limitMs: 30_000, everyMs: 5, explain },
        () => !isRunning(processOf(part)),
      );
    },
    start,
    stop,
  };
}

async function claimBare() {
  for (let number = 1; ; number += 1) {
    const instance = instanceOf(`bare-${process.pid}-${number}`);
    if (claim(instance, { nodes: [] }, self())) {
      mkdirSync(join(instance.folder, 'etcd'), { mode: 0o700 });
      return instance;
    }
  }
}

/**
 * A loopback port that is free and stays ours while a part is down: below the range from which the kernel gives ports to
 * outgoing connections (32768 and up, ip_local_port_range), or one of these might take it.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
