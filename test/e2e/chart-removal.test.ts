/**
 * The life of agents under the chart: they carry traffic with the rights and the image that people have, and when the
 * release goes, every node is as it was before.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { must } from '../../lab/host/command.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { helmEnv, install, release } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { tellOfLab } from './witness.ts';

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
/** One small replica for rules that name no proxy. */
const smallProxy = ['minReplicas=1', 'maxReplicas=1', 'resource.cpu=200m', 'resource.mem=256Mi'].map(
  (value) => `operator.defaultProxy.${value}`,
);
/** Everything that the operator makes. */
const madeByOperator = [
  'get',
  'bcsegresscontrollers,deployments,services,endpointslices,horizontalpodautoscalers,poddisruptionbudgets,networkpolicies',
  ...['--all-namespaces', '-l', 'app.kubernetes.io/managed-by=sallyport-operator', '-o', 'name'],
];
/** The two lists of commands with which the page about proxies removes them: with the operator, and without. */
const [inOrder = '', byHand = ''] = readFileSync(join(import.meta.dirname, '../../docs/how-to/run-proxies.md'), 'utf8')
  .split('## Remove it')
  .slice(1)
  .flatMap((text) => [...text.matchAll(/```sh\n(.*?)```/gs)])
  .map(([, commands = '']) => commands);

/** What pods, clocks and neighbours change meanwhile. */
const passing = /veth|expires|mc_forwarding|stable_secret/;

describe('agents under the chart', () => {
  let lab: Lab;
  tellOfLab('e2e-removal');
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
    await install({ instance: instanceOf(lab.name), programs: lab.programs, set: smallProxy, progress: silent });
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

  const makeEgress = async () => {
    const rule = { name: 'db', sourceport: 5432, destport: ports.database, ips: addresses.outside.ipv4 };
    await until({ what: 'the rule to be taken', limitMs: 60_000, everyMs: 500 }, async () => {
      await lab.apply({
        apiVersion: 'bkbcs.tencent.com/v1alpha1',
        kind: 'BCSEgress',
        metadata: { name: 'shop', namespace: 'default' },
        spec: { rules: { tcp: [rule] } },
      });
      return true;
    });
    await lab.kubectl(['wait', '--for=jsonpath={.status.state}=Synced', 'bcsegress/shop', '--timeout=180s']);
    assert.match(await lab.kubectl(madeByOperator), /deployment.apps\/egress-controller/);
  };
  /** Runs commands of a page, but for helm. */
  const runPage = async (commands: string) => {
    const script = commands.replaceAll(/^helm .*$/gm, '');
    const env = { KUBECONFIG: lab.kubeconfig, PATH: `${dirname(lab.programs.kubectl)}:${process.env.PATH}` };
    await must('commands of the page', ['sh', '-ec', script], { env, timeoutMs: 400_000 });
  };
  const untilNothingMade = () =>
    until({ what: 'nothing of the operator to be left', limitMs: 60_000, everyMs: 300 }, async () => {
      return (await lab.kubectl(madeByOperator)).trim() === '';
    });

  test('rules and their proxy go before the release, as the page says', async () => {
    await makeEgress();
    await runPage(inOrder);
    await untilNothingMade();
    // Again, for the other way: the release goes first.
    await makeEgress();
  });

  test('helm uninstall takes everything off the nodes, and the pod leaves as before', async () => {
    for (const node of nodes) assert.notDeepEqual(await picture(node), pristine.get(node), `${node} was in use`);
    const started = performance.now();
    const uninstall = [lab.programs.helm, 'uninstall', release.name, ...target, '--wait', '--timeout', '300s'];
    await must('uninstall', uninstall, { env: helmEnv(instanceOf(lab.name)), timeoutMs: 330_000 });
    console.log(`removed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    for (const node of nodes) assert.deepEqual(await picture(node), pristine.get(node), node);
    const left = 'daemonsets,jobs,pods,serviceaccounts,roles,rolebindings';
    await until({ what: 'the pods to end', limitMs: 60_000, everyMs: 300 }, async () => {
      const names = await lab.kubectl(['get', left, ...target, '-o', 'name']);
      return names.trim() === 'serviceaccount/default';
    });
    const seen = await until({ what: 'an answer', limitMs: 30_000 }, async () => {
      const { stdout } = await sourceSeenBy('web');
      return stdout === '' ? undefined : stdout;
    });
    assert.match(seen, new RegExp(`"${lab.status.nodes.find(({ name }) => name === 'worker-1')?.ipv4}"`));
  });

  test('rules that were left behind go by hand, as the page says', async () => {
    assert.match(await lab.kubectl(madeByOperator), /deployment.apps\/egress-controller/);
    await runPage(byHand);
    await untilNothingMade();
    assert.equal(await lab.kubectl(['get', 'bcsegresses', '--all-namespaces', '-o', 'name']), '');
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
    let seen = '';
    await until({ what: 'the pod to end', limitMs: 60_000, explain: () => seen }, async () => {
      seen = await lab.kubectl(['get', 'pod', 'look', '-o', 'jsonpath={.status}']);
      return /"terminated"/.test(seen);
    });
    assert.equal(await lab.kubectl(['logs', 'look']), '/node/sallyport\n', seen);
  });
});
