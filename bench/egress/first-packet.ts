/** From the request that creates a policy until the first question of a pod leaves with the EIP. */
import { setTimeout } from 'node:timers/promises';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import type { PodClient } from '../../lab/inside/pod-client.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';

const askEveryMs = 10;
/** When nearly all have seen it. */
const lookAfterMs = 250;
const eips = 50;

/** Each policy is the first on its EIP: the address has to be probed for and announced too. */
export async function policyToPacket(
  kube: KubeClient,
  client: PodClient,
  before: string,
  rounds: number,
): Promise<number[]> {
  const policies = resourceOf('EgressPolicy');
  const question = { transport: 'tcp', host: addresses.outside.ipv4, port: ports.tcp, limitMs: 500 } as const;
  const samplesMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const eip = `10.77.0.${100 + (round % eips)}`;
    const stream = await client.stream(question, { everyMs: askEveryMs, isKept: false });
    const startedAtMs = Date.now();
    await kube.create(policies, policy(eip));
    // The client notes the moment itself. Looking starts two programs, so it is done rarely, and not at once: they would be measured too.
    await setTimeout(lookAfterMs);
    const wait = { what: `the pod to leave with ${eip}`, limitMs: 30_000, everyMs: 500 };
    const sawItMs = await until(wait, async () => (await stream.tally()).firstAskedAtMs[eip]);
    samplesMs.push(sawItMs - startedAtMs);
    await stream.stop();
    await kube.delete(policies, { namespace: 'default', name: 'bench' });
    await until({ what: 'the pod to leave as before', limitMs: 30_000, everyMs: 250 }, async () => {
      return (await client.source(question)) === before;
    });
    await untilForgotten(kube, eip);
  }
  return samplesMs;
}

/** What follows a deletion is no part of the next creation: nodes report a second later, and gateways are written every two seconds. */
async function untilForgotten(kube: KubeClient, eip: string): Promise<void> {
  const kinds = [resourceOf('EgressTunnel'), resourceOf('EgressGateway')];
  await until({ what: `everybody to forget ${eip}`, limitMs: 30_000, everyMs: 250 }, async () => {
    for (const kind of kinds) {
      for await (const { items } of kube.list<KubeObject & { readonly status?: object }>(kind)) {
        if (items.some(({ status = {} }) => JSON.stringify(status).includes(`"${eip}"`))) return false;
      }
    }
    return true;
  });
}

function policy(ipv4: string) {
  return {
    metadata: { name: 'bench', namespace: 'default' },
    spec: {
      egressGatewayName: 'main',
      egressIP: { ipv4 },
      appliedTo: { podSelector: { matchLabels: { app: 'client' } } },
    },
  };
}
