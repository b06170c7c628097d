/** The part of agent.ts that runs in the network namespace of the node: API server, agent, and a look at the kernel. */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { until } from '../../lab/host/wait.ts';
import { loadChangeFeed } from '../../src/dataplane/nft/change-feed.ts';
import { createAuthority, issue } from '../../src/runtime/certs/authority.ts';
import { startTestApiServer } from '../../src/runtime/testing/api-server.ts';
import { fill, nodeOf, type Role, resources, roles } from './objects.ts';
import { startAgent } from './process.ts';

const limits = { rssMb: 85, idlePercent: 1, podP95Ms: 30 };
/** As in the chart. */
const chartOptions = '--max-semi-space-size=2 --v8-pool-size=1';
const rounds = 30;
/** What an agent still has to do after its start, and V8 to give back. */
const settleMs = 8_000;

const { values: options } = parseArgs({
  options: {
    policies: { type: 'string', default: '5000' },
    pods: { type: 'string', default: '100' },
    eips: { type: 'string', default: '40' },
    'idle-seconds': { type: 'string', default: '60' },
    'node-options': { type: 'string', default: chartOptions },
    role: { type: 'string', default: 'worker' },
    map: { type: 'boolean', default: false },
  },
});
const role: Role | undefined = roles.find((one) => one === options.role);
if (role === undefined) throw new Error(`--role is one of ${roles.join(', ')}`);
let isMet = true;
await run(role);
console.log(isMet ? '\nAll limits are kept.' : '\nNot all limits are kept.');
if (!isMet) process.exitCode = 1;

async function run(role: Role): Promise<void> {
  const now = new Date();
  const authority = await createAuthority({ commonName: 'bench', lifetimeDays: 1, now });
  const request = {
    commonName: 'bench',
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    lifetimeDays: 1,
    now,
  } as const;
  const { certificatePem: cert, keyPem: key } = await issue(authority, request);
  const server = await startTestApiServer({ resources: Object.values(resources), tls: { key, cert } });
  const changes = fill(server, Number(options.policies), Number(options.pods), Number(options.eips), role);
  const openFeed = await loadChangeFeed();
  console.log(
    `${role}: ${options.policies} policies on ${options.eips} EIPs, ${options.pods} pods; load average ${(loadavg()[0] ?? 0).toFixed(1)}`,
  );
  const agent = await startAgent(
    nodeOf(role),
    kubeconfig(server.url, authority.certificatePem),
    options['node-options'],
  );
  try {
    line('start to ready, ms', agent.readyMs);
    await sleep(settleMs);
    line('memory, MB', agent.rssMb(), limits.rssMb);
    line('memory at most, MB', agent.peakRssMb());
    if (options.map) console.log(agent.memoryMap());
    const idleSeconds = Number(options['idle-seconds']);
    if (idleSeconds > 0) {
      const before = agent.cpuSeconds();
      await sleep(idleSeconds * 1_000);
      line('idle, % of a core', ((agent.cpuSeconds() - before) / idleSeconds) * 100, limits.idlePercent);
      // Pages of the program that were let go come back when they are used.
      line('memory after idling, MB', agent.rssMb(), limits.rssMb);
    }
    const feed = openFeed();
    for (const [what, { come, go }] of Object.entries(changes)) {
      const times: number[] = [];
      const cpuBefore = agent.cpuSeconds();
      for (let round = 0; round < rounds; round += 1) {
        for (const change of [come, go]) times.push(await timeToKernel(feed, change));
      }
      const cpuMs = ((agent.cpuSeconds() - cpuBefore) * 1_000) / times.length;
      const limit = what === 'pod' ? limits.podP95Ms : undefined;
      line(`one ${what}: p50, ms`, quantile(times, 0.5));
      line(`one ${what}: p95, ms`, quantile(times, 0.95), limit);
      line(`one ${what}: processor time, ms`, cpuMs);
    }
    feed.close();
    line('memory right after the changes, MB', agent.rssMb());
    await sleep(settleMs);
    if (options.map) console.log(agent.memoryMap());
    line('memory after the changes, MB', agent.rssMb(), limits.rssMb);
  } finally {
    await agent.stop();
    await server.stop();
  }
}

/** From the moment the API server has a change until the kernel tells that the table has changed. */
async function timeToKernel(feed: ReturnType<Awaited<ReturnType<typeof loadChangeFeed>>>, change: () => void) {
  // What comes too late from the change before would be taken for this one.
  await sleep(60);
  feed.receive();
  const startMs = performance.now();
  change();
  await until({ what: 'the kernel to change', limitMs: 5_000, everyMs: 1 }, () => feed.receive().length > 0);
  return performance.now() - startMs;
}

function kubeconfig(server: string, caPem: string): object {
  const ca = Buffer.from(caPem).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    clusters: [{ name: 'bench', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'bench', user: { token: 'bench' } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
  };
}

function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

function line(what: string, value: number, limit?: number): void {
  const holds = limit === undefined || value <= limit;
  isMet &&= holds;
  const verdict = limit === undefined ? '' : `   limit ${limit}${holds ? '' : '   NOT KEPT'}`;
  console.log(`  ${what.padEnd(34)}${value.toFixed(1).padStart(8)}${verdict}`);
}
