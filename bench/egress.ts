/**
 * How long users wait, over the whole way (admission, controller, both agents, kernels, network), in the lab: from a policy to
 * the first packet with its EIP, alone and beside 5,000 policies; from the address of a new pod to the kernel of its node;
 * from 1,000 policies at once to every kernel. The pods are on a worker. `egress.ts [ROUNDS] [CROWD]`.
 */
import { loadavg } from 'node:os';
import { instanceOf } from '../lab/host/instance.ts';
import { silent } from '../lab/host/progress.ts';
import { startClients } from '../lab/inside/pod-client.ts';
import { install } from '../lab/install.ts';
import { type Lab, startLab } from '../lab/lab.ts';
import { createKubeClient } from '../src/runtime/kube/http-client.ts';
import { loadAccess } from '../src/runtime/kube/load-access.ts';
import { systemClock } from '../src/runtime/process/clock.ts';
import { judge } from './egress/bars.ts';
import { type CrowdTimes, growCrowd, untilCrowdIsQuiet } from './egress/crowd.ts';
import { policyToPacket } from './egress/first-packet.ts';
import { podAddressToKernel } from './egress/pod-address.ts';

const rounds = Number(process.argv[2] ?? 30);
const crowd = Number(process.argv[3] ?? 5_000);
const atOnce = 1_000;
const atOnceLimitMs = 15_000;
const worker = 'worker-1';

const lab = await startLab({ name: 'bench-egress', gateways: 2, workers: 1 });
try {
  const set = ['config.feature.enableIPv6=true'];
  await install({ instance: instanceOf(lab.name), programs: lab.programs, set, progress: silent });
  if (!(await measure(lab))) process.exitCode = 1;
} finally {
  await lab.down();
}

/** Measures everything; true when every promise is kept. */
async function measure({ kubeconfig, status }: Lab): Promise<boolean> {
  const access = await loadAccess({ path: kubeconfig });
  const rateLimit = { perSecond: 1_000, burst: 1_000 };
  const kube = createKubeClient({ access, userAgent: 'bench', clock: systemClock, random: Math.random, rateLimit });
  const before = status.nodes.find(({ name }) => name === worker)?.ipv4 ?? '';
  try {
    const [client] = await startClients(lab, [{ name: 'client', namespace: 'default', node: worker }]);
    if (client === undefined) throw new Error('there is no client');
    await lab.apply(
      gateway('main', '10.77.0.100-10.77.0.149', 'fd77::100-fd77::131'),
      gateway('crowd', '10.77.0.150-10.77.0.189', 'fd77::150-fd77::177'),
    );
    const alone = judge(
      { what: 'policy to first packet, empty cluster', limitMs: 120, baseline: 'p50 91 ms, p95 123 ms' },
      await policyToPacket(kube, client, before, rounds),
    );
    const pods = judge(
      { what: 'pod address in the API to kernel', limitMs: 60, baseline: '33 ms to 1 s' },
      await podAddressToKernel(lab, kube, worker, rounds),
    );
    const many = judgeCrowd(await growCrowd(lab, kube, 0, atOnce));
    const { inKernelsMs } = await growCrowd(lab, kube, atOnce, crowd);
    console.log(`the other ${crowd - atOnce} policies were in every kernel after ${seconds(inKernelsMs)}`);
    await untilCrowdIsQuiet(kube);
    const beside = judge(
      {
        what: `policy to first packet beside ${crowd} policies`,
        limitMs: 150,
        baseline: 'beside 500: p50 7.1 s, p95 9.1 s',
      },
      await policyToPacket(kube, client, before, rounds),
    );
    return alone && pods && many && beside;
  } finally {
    await kube.close();
  }
}

function judgeCrowd({ createdMs, inKernelsMs }: CrowdTimes): boolean {
  const isKept = inKernelsMs <= atOnceLimitMs;
  console.log(`${atOnce} policies at once, load ${loadavg()[0]?.toFixed(1)}`);
  console.log(
    `  ours      in every kernel ${seconds(inKernelsMs)} after the first call; calls took ${seconds(createdMs)}`,
  );
  console.log('  baseline  500 policies were not done after 445 s (not in this run)');
  console.log(`  limit     ${seconds(atOnceLimitMs)}: ${isKept ? 'kept' : 'NOT KEPT'}`);
  return isKept;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function gateway(name: string, ipv4: string, ipv6: string): object {
  return {
    apiVersion: 'egressgateway.spidernet.io/v1beta1',
    kind: 'EgressGateway',
    metadata: { name },
    spec: {
      ippools: { ipv4: [ipv4], ipv6: [ipv6] },
      nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
    },
  };
}
