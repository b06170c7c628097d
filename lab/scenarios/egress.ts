import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { until } from '../host/wait.ts';
import type { Lab } from '../lab.ts';
import { expectSame, type Scenario, type Tell, Unexpected } from './scenario.ts';
import { type } from './typed.ts';

const root = join(import.meta.dirname, '..', '..');
/** The manifests of the story; whoever looks around afterwards can apply them again. */
export const manifests = 'lab/scenarios/egress';
const bank = { ipv4: '10.77.0.105', ipv6: 'fd77::105' };
const clientSchema = z.object({ address: z.string(), port: z.int() });
const eipSchema = z.object({ status: z.object({ eip: z.object({ ipv4: z.string(), ipv6: z.string() }) }) });

/** An address of each family. */
interface Pair {
  readonly ipv4: string;
  readonly ipv6: string;
}

/** Pods get an address of their own to leave with, for as long as a policy says so. Needs the chart in the lab. */
export const egress: Scenario = {
  name: 'egress',
  about: 'With Sallyport, pods leave the cluster with an address of their own: an EIP, in both address families.',
  steps: [
    {
      title: 'a pod of the shop leaves with the address of the node that it runs on',
      async act(lab, tell) {
        await type(lab, tell, `kubectl apply -f ${manifests}/1-shop.yaml`);
        await type(lab, tell, 'kubectl -n shop rollout status deploy/orders --timeout=180s');
        return expectSource(lab, tell, lab.status.outside, nodeOf(lab));
      },
    },
    {
      title: 'a gateway offers ten pairs of EIPs on the nodes labelled egress=true',
      async act(lab, tell) {
        await show(tell, '2-gateway.yaml');
        await type(lab, tell, `kubectl apply -f ${manifests}/2-gateway.yaml`);
        await type(lab, tell, 'kubectl wait --for=condition=Ready egressgateway/office --timeout=180s');
        return 'the nodes of the gateway are ready';
      },
    },
    {
      title: 'a policy sends the pods labelled app=orders through it',
      async act(lab, tell) {
        await show(tell, '3-orders.yaml');
        await type(lab, tell, `kubectl apply -f ${manifests}/3-orders.yaml`);
        await untilProgrammed(lab, tell, 'orders');
        await type(lab, tell, 'kubectl -n shop get egresspolicy orders');
        const { ipv4, ipv6 } = await eipOf(lab, 'orders');
        return `the policy has the EIPs ${ipv4} and ${ipv6}, and the kernels know it`;
      },
    },
    {
      title: 'the same pod, asking the same server, leaves with the EIP; the server has seen no packet from elsewhere',
      async act(lab, tell) {
        const { ipv4, ipv6 } = await eipOf(lab, 'orders');
        await lab.resetCounts();
        await expectSource(lab, tell, lab.status.outside, { ipv4, ipv6 });
        const asked = (await lab.packets()).filter(({ port }) => port === lab.status.outside.httpPort);
        expectSame(
          'sources',
          asked
            .map(({ source }) => source)
            .sort()
            .join(' '),
          [ipv4, ipv6].sort().join(' '),
        );
        return `the server counted ${asked.map(({ source, packets }) => `${packets} packets from ${source}`).join(', ')}`;
      },
    },
    {
      title: 'egctl explains why, and checks what the kernels hold',
      async act(lab, tell) {
        await type(lab, tell, `bin/egctl why deploy/orders -n shop --to ${lab.status.outside.ipv4}`);
        return 'decision, status and kernels agree';
      },
    },
    {
      title: 'a second policy has precedence for one destination; everything else stays as it was',
      async act(lab, tell) {
        await show(tell, '4-bank.yaml');
        await type(lab, tell, `kubectl apply -f ${manifests}/4-bank.yaml`);
        await untilProgrammed(lab, tell, 'bank');
        const there = await expectSource(lab, tell, lab.status.elsewhere, bank);
        const here = await expectSource(lab, tell, lab.status.outside, await eipOf(lab, 'orders'));
        return `there ${there}; for everything else ${here}`;
      },
    },
    {
      title: 'egctl shows the state of everything on one screen',
      async act(lab, tell) {
        await type(lab, tell, 'bin/egctl status');
        return 'everything is fine';
      },
    },
    {
      title: 'without the policies the pod leaves with the address of its node again',
      async act(lab, tell) {
        await type(lab, tell, 'kubectl -n shop delete egresspolicy --all');
        // The policies are gone at once; the kernels follow a moment later, and until then the EIP is right.
        const { ipv4 } = nodeOf(lab);
        const what = 'the kernels to forget the policies';
        await until({ what, limitMs: 10_000 }, async () => (await ask(lab, lab.status.outside.ipv4)) === ipv4);
        return expectSource(lab, tell, lab.status.outside, nodeOf(lab));
      },
    },
  ],
};

/** Shows a manifest. */
async function show(tell: Tell, file: string): Promise<void> {
  tell.typed(`cat ${manifests}/${file}`);
  tell.printed((await readFile(join(root, manifests, file), 'utf8')).trimEnd());
}

/** Asks the server from the pod in both families, as a user would; throws if another address than promised is seen. */
async function expectSource(lab: Lab, tell: Tell, server: Pair, promised: Pair): Promise<string> {
  for (const family of ['ipv4', 'ipv6'] as const) {
    const said = await type(lab, tell, `kubectl ${curl(lab, server[family])}`);
    const { address } = clientSchema.parse(JSON.parse(said));
    expectSame(`source address over ${family === 'ipv4' ? 'IPv4' : 'IPv6'}`, address, promised[family]);
  }
  return `the server sees ${promised.ipv4} and ${promised.ipv6}`;
}

async function ask(lab: Lab, server: string): Promise<string> {
  return clientSchema.parse(JSON.parse(await lab.kubectl(curl(lab, server).split(' ')))).address;
}

function curl(lab: Lab, server: string): string {
  const host = server.includes(':') ? `[${server}]` : server;
  return `-n shop exec deploy/orders -- curl -sS --max-time 5 http://${host}:${lab.status.outside.httpPort}/`;
}

function nodeOf(lab: Lab): Pair {
  const node = lab.status.nodes.find(({ name }) => name === 'worker-1');
  if (node === undefined) throw new Unexpected('the lab has no node worker-1');
  return node;
}

const untilProgrammed = (lab: Lab, tell: Tell, policy: string) =>
  type(lab, tell, `kubectl -n shop wait --for=condition=Programmed egresspolicy/${policy} --timeout=180s`);

async function eipOf(lab: Lab, policy: string): Promise<Pair> {
  const text = await lab.kubectl(['-n', 'shop', 'get', 'egresspolicy', policy, '-o', 'json']);
  return eipSchema.parse(JSON.parse(text)).status.eip;
}
