import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { must, run } from '../host/command.ts';
import { BadInput } from '../host/failure.ts';
import type { Progress } from '../host/progress.ts';

/** Debian package -> why the lab needs it. */
const packages = {
  'ca-certificates': 'Go and npm download over TLS',
  curl: 'programs in pods ask the outside server',
  'containernetworking-plugins': 'pods are wired by the real CNI plugins',
  conntrack: 'kube-proxy and the data-plane tests read connection tracking',
  iproute2: 'namespaces, links, addresses and routes',
  'iputils-ping': 'tests ask whether a kernel still answers',
  iptables: 'kube-proxy in iptables mode',
  'libnginx-mod-stream': 'forwards TCP in nginx, an engine of the egress proxy',
  nginx: 'an engine of the egress proxy',
  nftables: 'kube-proxy in nftables mode and our own data plane',
  'python3-pip': 'Envoy comes as a wheel of Python',
  'util-linux': 'nsenter and unshare',
} as const;

/** Clients of the egress proxy that its tests run, by Debian package; 5 MB when all are missing. */
export const clientPackages = {
  git: 'fetches a repository through the proxy',
  ncat: 'CONNECT of HTTP/1.0 by nmap',
  'netcat-openbsd': 'nc -X connect, as ssh uses it',
  openssl: 's_client -proxy',
  'postgresql-client': 'psql through a TCP rule',
  'python3-grpcio': 'gRPC through a tunnel',
  'python3-httpx': 'the third of the usual HTTP clients of Python',
  'python3-websocket': 'WebSocket through a tunnel',
  'redis-tools': 'redis-cli through a TCP rule',
  socat: 'CONNECT of HTTP/1.0, as ssh uses it',
  wget: 'fetches a page through the proxy',
} as const;

/** Installs those of the Debian packages that are missing and says which; without a list, what the lab needs. */
export async function installPackages(progress: Progress, wanted = Object.keys(packages)): Promise<void> {
  const missing = await missingOf(wanted);
  if (missing.length === 0) return;
  if ((await run(['apt-get', '--version']).catch(() => undefined)) === undefined) {
    throw new BadInput(`apt-get is missing: install ${missing.join(', ')} by hand, or use Debian 12`);
  }
  await progress.step(`set-up: install Debian packages ${missing.join(' ')}`, async (update) => {
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    // Another apt run on the machine (unattended upgrades) holds a lock for a while: wait for it instead of failing.
    const lock = ['-o', 'DPkg::Lock::Timeout=300'];
    update('reading package lists');
    await must('read the Debian package lists', ['apt-get', '-q', ...lock, 'update'], { env, timeoutMs: 600_000 });
    update('installing');
    const argv = ['apt-get', '-q', '-y', ...lock, 'install', '--no-install-recommends', ...missing];
    await withoutServices(() => must('install Debian packages', argv, { env, timeoutMs: 900_000 }));
  });
}

const policyFile = '/usr/sbin/policy-rc.d';

/** Keeps packages from starting their servers: the lab starts its own, in namespaces of its own. */
async function withoutServices(install: () => Promise<unknown>): Promise<void> {
  // Somebody else's policy is respected.
  if (existsSync(policyFile)) return void (await install());
  writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    await install();
  } finally {
    rmSync(policyFile, { force: true });
  }
}

async function missingOf(names: readonly string[]): Promise<string[]> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are dpkg's own field names.
  const argv = ['dpkg-query', '--show', '--showformat=${Package} ${db:Status-Status}\\n', ...names];
  const finished = await run(argv).catch(() => undefined);
  const installed = new Set((finished?.stdout ?? '').split('\n').filter((line) => line.endsWith(' installed')));
  return names.filter((name) => !installed.has(`${name} installed`));
}
