import { z } from 'zod';
import type { Lab } from '../lab.ts';
import { expectSame, type Scenario, Unexpected } from './scenario.ts';

const namespace = 'way-out';
const clientSchema = z.object({ address: z.string(), port: z.int() });
const podListSchema = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string() }), spec: z.object({ nodeName: z.string() }) })),
});

/** A cluster without Sallyport: a pod leaves with the address of whatever node it happens to run on. */
export const wayOut: Scenario = {
  name: 'way-out',
  about: 'Without an egress gateway, a pod leaves the cluster with the address of the node it happens to run on.',
  steps: [
    {
      title: 'a DaemonSet puts one pod on every node',
      async act(lab) {
        await lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, clients);
        await lab.kubectl(['-n', namespace, 'rollout', 'status', 'daemonset/client', '--timeout=180s']);
        return `${(await pods(lab)).length} pods`;
      },
    },
    ...(['ipv4', 'ipv6'] as const).map((family) => ({
      title: `each pod asks the outside server over ${family === 'ipv4' ? 'IPv4' : 'IPv6'} for its source address`,
      async act(lab: Lab) {
        const { outside, nodes } = lab.status;
        const host = family === 'ipv4' ? outside.ipv4 : `[${outside.ipv6}]`;
        const seen: string[] = [];
        for (const pod of await pods(lab)) {
          const said = await ask(lab, pod.name, `http://${host}:${outside.httpPort}/`);
          const node = nodes.find((candidate) => candidate.name === pod.node);
          expectSame(`source address of pod ${pod.name}`, said, node?.[family] ?? `an address of node ${pod.node}`);
          seen.push(`${pod.node} ${said}`);
        }
        return seen.sort().join(', ');
      },
    })),
    {
      title: 'names outside the cluster resolve',
      async act(lab) {
        const [first] = await pods(lab);
        if (first === undefined) throw new Unexpected('there is no pod');
        return `the pod on ${first.node} reached shop.outside.test as ${await ask(lab, first.name, `http://shop.outside.test:${lab.status.outside.httpPort}/`)}`;
      },
    },
    {
      title: 'the outside world counted packets of node addresses only: no pod address leaked',
      async act(lab) {
        const counts = await lab.counts();
        const strangers = Object.keys(counts).filter((address) => /^(10\.244\.|fd44:)/.test(address));
        expectSame('pod addresses seen outside', strangers.join(' '), '');
        const silent = lab.status.nodes.filter((node) => !counts[node.ipv4] || !counts[node.ipv6]);
        expectSame('nodes not seen outside', silent.map((node) => node.name).join(' '), '');
        return lab.status.nodes.map((node) => `${node.ipv4} ${counts[node.ipv4]} packets`).join(', ');
      },
    },
    {
      title: 'the namespace is removed again',
      async act(lab) {
        await lab.kubectl(['delete', 'namespace', namespace, '--timeout=180s']);
        return 'gone';
      },
    },
  ],
};

const clients = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'client', namespace },
  spec: {
    selector: { matchLabels: { app: 'client' } },
    template: {
      metadata: { labels: { app: 'client' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'client', image: 'any/image:will-do', command: ['sleep', 'infinity'] }],
      },
    },
  },
};

async function pods(lab: Lab): Promise<{ name: string; node: string }[]> {
  const list = podListSchema.parse(JSON.parse(await lab.kubectl(['-n', namespace, 'get', 'pods', '-o', 'json'])));
  return list.items.map((pod) => ({ name: pod.metadata.name, node: pod.spec.nodeName }));
}

async function ask(lab: Lab, pod: string, url: string): Promise<string> {
  const argv = ['-n', namespace, 'exec', pod, '--', 'curl', '-sS', '--max-time', '10', url];
  return clientSchema.parse(JSON.parse(await lab.kubectl(argv))).address;
}
