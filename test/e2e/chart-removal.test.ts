/**
 * The life of agents under the chart: they carry traffic with the rights and the image that people have, and when the
 * release goes, every node is as it was before.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { must } from '../../lab/host/command.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { helmEnv, install, release } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';

/** What of a kernel Sallyport could leave behind, as commands that print it. */
const pictures: readonly (readonly string[])[] = [
  ['nft', 'list', 'tables'],
  ['ip', '-br', 'link'],
  ['ip', '-br', 'address'],
  ['ip', 'rule'],
  ['ip', '-6', 'rule'],
  ['ip', 'route', 'show', 'table', 'all'],
  ['ip', '-6', 'route', 'show', 'table', 'all'],
  ['ip', 'neigh', 'show', 'proxy'],
  ['ip', '-6', 'neigh', 'show', 'proxy'],
  ['sysctl', '--all', '--pattern', '^net\\.(ipv4|ipv6)\\.(conf|ip_forward|neigh)'],
];
/** What pods, clocks and neighbours change meanwhile. */
const passing = /veth|expires|mc_forwarding|stable_secret/;

describe('agents under the chart', () => {
  let lab: Lab;
  before(async () => {
    lab = await startLab({ name: 'e2e-removal', gateways: 1, workers: 1 });
  });
  after(() => lab?.down());

  const nodes = ['gateway-1', 'worker-1'];
  const target = ['--namespace', release.namespace];
  const picture = async (node: string) => {
    const texts = await Promise.all(pictures.map(async (argv) => `${argv.join(' ')}\n${await lab.exec(node, argv)}`));
    return texts
      .join('')
      .split('\n')
      .filter((line) => line !== '' && !passing.test(line))
      .map((line) => line.trim());
  };
  const sourceSeenBy = (pod: string) =>
    lab.tryKubectl([
      'exec',
      pod,
      '--',
      'curl',
      '--silent',
      '--max-time',
      '2',
      `http://${addresses.outside.ipv4}:${ports.http}/`,
    ]);

  let pristine: ReadonlyMap<string, readonly string[]>;
  test('a pod leaves with its EIP, by the rights of the chart and nothing more', async () => {
    pristine = new Map(await Promise.all(nodes.map(async (node) => [node, await picture(node)] as const)));
    await install({ instance: instanceOf(lab.name), programs: lab.programs, set: [], progress: silent });
    const [eip = ''] = lab.status.eips.ipv4;
    const apiVersion = 'egressgateway.spidernet.io/v1beta1';
    await lab.apply(
      {
        apiVersion,
        kind: 'EgressGateway',
        metadata: { name: 'first' },
        spec: { ippools: { ipv4: [eip] }, nodeSelector: { selector: { matchLabels: { egress: 'true' } } } },
      },
      {
        apiVersion,
        kind: 'EgressPolicy',
        metadata: { name: 'web', namespace: 'default' },
        spec: { egressGatewayName: 'first', appliedTo: { podSelector: { matchLabels: { app: 'web' } } } },
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
        spec: { nodeName: 'worker-1', containers: [{ name: 'main', image: 'any', command: ['sleep', 'infinity'] }] },
      },
    );
    let answer = '';
    await until({ what: `the pod to leave with ${eip}`, limitMs: 60_000, explain: () => answer }, async () => {
      answer = (await sourceSeenBy('web')).stdout;
      return answer.includes(`"${eip}"`);
    });
    const logs = await lab.kubectl(['logs', ...target, '-l', 'app.kubernetes.io/component=agent', '--tail=-1']);
    assert.doesNotMatch(logs, /forbidden|denied|"level":"(error|fatal)"/i);
  });

  test('helm uninstall takes everything off the nodes, and the pod leaves as before', async () => {
    for (const node of nodes) assert.notDeepEqual(await picture(node), pristine.get(node), `${node} was in use`);
    const started = performance.now();
    const uninstall = [lab.programs.helm, 'uninstall', release.name, ...target, '--wait', '--timeout', '120s'];
    await must('uninstall', uninstall, { env: helmEnv(instanceOf(lab.name)), timeoutMs: 130_000 });
    console.log(`removed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    for (const node of nodes) assert.deepEqual(await picture(node), pristine.get(node), node);
    const left = 'daemonsets,jobs,pods,serviceaccounts,roles,rolebindings';
    await until({ what: 'the pods to end', limitMs: 60_000, everyMs: 300 }, async () => {
      const names = await lab.kubectl(['get', left, ...target, '-o', 'name']);
      return names.trim() === 'serviceaccount/default';
    });
    const { stdout } = await sourceSeenBy('web');
    assert.match(stdout, new RegExp(`"${lab.status.nodes.find(({ name }) => name === 'worker-1')?.ipv4}"`));
  });

  test('the folder of the agents on the node is empty', async () => {
    const look = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'look', namespace: 'default' },
      spec: {
        nodeName: 'gateway-1',
        restartPolicy: 'Never',
        containers: [
          {
            name: 'main',
            image: 'any',
            command: ['find', '/node/sallyport'],
            volumeMounts: [{ name: 'run', mountPath: '/node' }],
          },
        ],
        volumes: [{ name: 'run', hostPath: { path: '/run' } }],
      },
    };
    await lab.apply(look);
    await lab.kubectl(['wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/look', '--timeout=60s']);
    assert.equal(await lab.kubectl(['logs', 'look']), '/node/sallyport\n');
  });
});
