import { z } from 'zod';
import { until } from '../host/wait.ts';
import type { Tally } from '../inside/client.ts';
import { type RunningStream, startClients } from '../inside/pod-client.ts';
import type { Lab } from '../lab.ts';
import { manifests } from './egress.ts';
import { expectSame, type Scenario, Unexpected } from './scenario.ts';
import { type } from './typed.ts';

const everyMs = 20;
// The kernel tries a connection again after a second; one that is answered later had lost its first packet.
const lateMs = 900;
const mostMs = 1_000;
const recordSchema = z.object({ status: z.object({ node: z.string(), eip: z.object({ ipv4: z.string() }) }) });

/** A gateway node loses its power while pods go on asking. Needs the chart and the manifests of the egress story. */
export function failover(): Scenario {
  // What goes on from step to step.
  let customer: { readonly stream: RunningStream; readonly lost: string; readonly eip: string } | undefined;
  const started = () => {
    if (customer === undefined) throw new Unexpected('no requests are under way');
    return customer;
  };
  return {
    name: 'failover',
    about:
      'A gateway node may be lost at any time. Another one takes its EIPs over, without asking anybody but the nodes.',
    steps: [
      {
        title: `a pod of the shop sends a request to a server outside every ${everyMs} ms, each over a new connection`,
        async act(lab, tell) {
          await type(lab, tell, `kubectl apply -f ${manifests}`);
          const [client] = await startClients(lab, [
            { name: 'customer', namespace: 'shop', node: 'worker-1', labels: { app: 'orders' } },
          ]);
          if (client === undefined) throw new Unexpected('there is no client');
          await type(lab, tell, 'kubectl -n shop wait --for=condition=Programmed egresspolicy/orders --timeout=60s');
          const { node: lost, eip } = await recordOf(lab);
          const { outside } = lab.status;
          const question = { transport: 'tcp', host: outside.ipv4, port: outside.tcpPort, limitMs: lateMs } as const;
          await until(
            { what: 'the EIP to be seen', limitMs: 10_000 },
            async () => (await client.source(question)) === eip.ipv4,
          );
          await lab.resetCounts();
          customer = { stream: await client.stream(question, { everyMs, isKept: false }), lost, eip: eip.ipv4 };
          return `the server sees ${eip.ipv4}, by way of ${lost}`;
        },
      },
      {
        title: 'the gateway node loses its power: another takes over in a fraction of a second',
        async act(lab, tell) {
          const { stream, lost, eip } = started();
          await type(lab, tell, `bin/lab node off ${lost} --name ${lab.name}`);
          const offAtMs = Date.now();
          const tally = await until({ what: 'answers again', limitMs: 60_000 }, async () => {
            const now = await stream.tally();
            return (now.lastAskedAtMs ?? 0) > offAtMs + lateMs + everyMs ? now : undefined;
          });
          const { failed, outageMs } = damageIn(tally);
          if (outageMs > mostMs) throw new Unexpected(`requests failed for ${outageMs} ms`);
          const sources = (await lab.packets()).filter(({ port }) => port === lab.status.outside.tcpPort);
          expectSame('sources', [...new Set(sources.map(({ source }) => source))].sort().join(' '), eip);
          return `${failed} of ${tally.asked} requests failed, in ${outageMs} ms; all others came from ${eip}`;
        },
      },
      {
        title: 'the power is back: nothing moves back, no request fails',
        async act(lab, tell) {
          const { stream, lost } = started();
          // By the time at which it was asked: one that was lost with the power is given up only now.
          const backAtMs = Date.now();
          await type(lab, tell, `bin/lab node on ${lost} --name ${lab.name}`);
          await type(lab, tell, `kubectl wait --for=condition=Ready node/${lost} --timeout=60s`);
          const { node } = await until({ what: 'the record to follow', limitMs: 30_000 }, async () => {
            const record = await recordOf(lab);
            return record.node === lost ? undefined : record;
          });
          const { failed } = damageIn(await stream.stop(), backAtMs);
          expectSame('failed requests', String(failed), '0');
          await type(lab, tell, 'kubectl -n shop get egresspolicy orders');
          await lab.kubectl(['-n', 'shop', 'delete', 'pod', 'customer', '--wait=false']);
          return `the EIP stays on ${node}`;
        },
      },
    ],
  };
}

/** How many requests failed in outages that lasted beyond a time, and from the first of them to the first answer after the last. */
function damageIn(tally: Tally, sinceMs = 0): { readonly failed: number; readonly outageMs: number } {
  const outages = tally.outages.filter(({ toMs = Number.POSITIVE_INFINITY }) => toMs > sinceMs);
  const failed = outages.reduce((sum, outage) => sum + outage.failed, 0);
  const [first] = outages;
  return { failed, outageMs: first === undefined ? 0 : (outages.at(-1)?.toMs ?? Date.now()) - first.fromMs };
}

async function recordOf(lab: Lab) {
  const text = await lab.kubectl(['-n', 'shop', 'get', 'egresspolicy', 'orders', '-o', 'json']);
  return recordSchema.parse(JSON.parse(text)).status;
}
