/**
 * The control plane of the chart at work in a lab, as its user sees it: `bin/lab install`, the running controller with
 * exactly the rights of the chart, upgrades under use, values that cannot work, and the removal that the how-to page
 * tells. Agents are in chart-removal.test.ts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { must, run } from '../../lab/host/command.ts';
import { LabFailure } from '../../lab/host/failure.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { helmEnv, install, release } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { tellOfLab } from './witness.ts';

const root = join(import.meta.dirname, '..', '..');
/** Agents may not be where pod security is the strictest; and these tests count the pods of the controller. */
const controllerOnly = 'agent.enabled=false,operator.enabled=false';

describe('the chart in a lab', () => {
  let lab: Lab;
  tellOfLab('e2e-chart');
  before(async () => {
    lab = await startLab({ name: 'e2e-chart', gateways: 1, workers: 1 });
  });
  after(() => lab?.down());

  const target = ['--namespace', release.namespace];
  const get = (what: string, path: string) => lab.kubectl(['get', what, ...target, '-o', `jsonpath=${path}`]);
  const labInstall = (...args: readonly string[]) =>
    run([join(root, 'bin', 'lab'), 'install', '--name', lab.name, '--set', controllerOnly, ...args], {
      timeoutMs: 400_000,
    });
  const podNames = async () => (await get('pods', '{.items[*].metadata.name}')).split(' ').filter(Boolean).toSorted();
  const holder = () => get('leases', '{.items[?(@.metadata.name=="sallyport-controller")].spec.holderIdentity}');
  const caBundles = () => get('validatingwebhookconfiguration/sallyport', '{.webhooks[*].clientConfig.caBundle}');
  const gateway = (name: string, address: string) => ({
    apiVersion: 'egressgateway.spidernet.io/v1beta1',
    kind: 'EgressGateway',
    metadata: { name },
    spec: {
      ippools: { ipv4: [address] },
      nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
    },
  });

  test('bin/lab install brings two replicas into service, on two nodes, under the strictest pod security', async () => {
    await lab.kubectl(['create', 'namespace', release.namespace]);
    await lab.kubectl(['label', 'namespace', release.namespace, 'pod-security.kubernetes.io/enforce=restricted']);
    const started = performance.now();
    // Sources that may not be read are told at this level only.
    const { code, stderr } = await labInstall('--set', 'controller.logLevel=debug');
    assert.equal(code, 0, stderr);
    console.log(`installed and in service in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const nodes = await get('pods', '{.items[*].spec.nodeName}');
    assert.deepEqual(nodes.split(' ').toSorted(), ['gateway-1', 'worker-1']);
    const ready = await get('pods', '{.items[*].status.containerStatuses[*].ready}');
    assert.equal(ready, 'true true');
    const leader = await holder();
    assert.ok(
      (await podNames()).some((pod) => leader.startsWith(`${pod}_`)),
      leader,
    );
  });

  test('the webhooks fill in and refuse, through the Service and with a certificate that the API server trusts', async () => {
    const [eip = '', other = ''] = lab.status.eips.ipv4;
    await lab.apply(gateway('first', eip));
    assert.equal(await get('egressgateway/first', '{.spec.ippools.ipv4DefaultEIP}'), eip);
    await lab.apply(gateway('second', other));
    const overlap = await lab.tryKubectl(['apply', '-f', '-'], JSON.stringify(gateway('third', eip)));
    assert.notEqual(overlap.code, 0);
    assert.match(overlap.stderr, /admission webhook "egressgateways\.egressgateway\.spidernet\.io" denied the request/);
  });

  test('the loops work with the rights of the chart: statuses, slices and events are written, nothing is forbidden', async () => {
    const policy = {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressPolicy',
      metadata: { name: 'web', namespace: 'default' },
      spec: {
        egressGatewayName: 'first',
        appliedTo: { podSelector: { matchLabels: { app: 'web' } } },
        destSubnet: ['198.51.100.0/24'],
      },
    };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
      spec: { containers: [{ name: 'main', image: 'any', command: ['sleep', 'infinity'] }] },
    };
    await lab.apply(policy, pod);
    const within = { limitMs: 30_000, everyMs: 200 };
    const has = (what: string, path: string) => async () =>
      (await lab.kubectl(['get', what, '-o', `jsonpath=${path}`])) !== '';
    await until({ what: 'the EIP of the policy', ...within }, has('egresspolicy/web', '{.status.eip.ipv4}'));
    await until(
      { what: 'a slice with the pod', ...within },
      has('egressendpointslices', '{.items[*].endpoints[*].pod}'),
    );
    await until(
      { what: 'the ranges of the cluster', ...within },
      has('egressclusterinfo/default', '{.status.clusterIP}'),
    );
    const reporter = '{.items[?(@.reportingComponent=="sallyport.io/controller")].reason}';
    await until({ what: 'an event', ...within }, has('events', reporter));
    for (const name of await podNames()) {
      assert.doesNotMatch(await lab.kubectl(['logs', name, ...target]), /forbidden|"level":"(error|fatal)"/i);
    }
  });

  test('a lease that somebody deletes is made anew', async () => {
    await lab.kubectl(['delete', 'lease/sallyport-controller', ...target]);
    await until({ what: 'a new holder', limitMs: 60_000, everyMs: 500 }, async () => (await holder()) !== '');
  });

  test('an upgrade rolls out under use: no write of a gateway fails, and the certificate authority stays', async () => {
    const before = { pods: await podNames(), caBundles: await caBundles() };
    const stop = new AbortController();
    const [, eip = ''] = lab.status.eips.ipv4;
    const failures: string[] = [];
    let writes = 0;
    const writing = (async () => {
      for (; !stop.signal.aborted; writes += 1) {
        // Every write changes the spec, or it would not be sent to the webhooks.
        const { spec, ...rest } = gateway('second', eip);
        const changed = JSON.stringify({ ...rest, spec: { ...spec, eipLimit: 5 + (writes % 2) } });
        const { code, stderr } = await lab.tryKubectl(['apply', '--server-side', '-f', '-'], changed);
        if (code !== 0) failures.push(stderr.trim());
      }
    })();
    try {
      // The first value makes all pods new, the second changes the webhooks.
      const values = ['config.feature.enableIPv6=true', 'webhooks.timeoutSeconds=7'];
      const { code, stderr } = await labInstall(...values.flatMap((value) => ['--set', value]));
      assert.equal(code, 0, stderr);
      await until({ what: 'the old pods to end', limitMs: 60_000, everyMs: 300 }, async () => {
        const now = await podNames();
        return now.every((pod) => !before.pods.includes(pod));
      });
    } finally {
      stop.abort();
      await writing;
    }
    assert.equal(await caBundles(), before.caBundles);
    console.log(`${writes} writes of a gateway during the upgrade`);
    assert.ok(writes > 5, `${writes} writes`);
    assert.deepEqual(failures, []);
  });

  test('another configuration reaches the running replicas without a restart', async () => {
    const before = await podNames();
    const values = ['config.feature.enableIPv6=true', 'config.feature.maxNumberEndpointPerSlice=50'];
    const { code, stderr } = await labInstall(...values.flatMap((value) => ['--set', value]));
    assert.equal(code, 0, stderr);
    assert.deepEqual(await podNames(), before);
    for (const name of before) {
      // The kubelet looks at ConfigMaps every minute or so.
      await until({ what: `${name} to follow`, limitMs: 150_000, everyMs: 500 }, async () =>
        (await lab.kubectl(['logs', name, ...target])).includes('the file is in force'),
      );
    }
  });

  test('values that the chart refuses change nothing: exit code 2 and the words of helm', async () => {
    const revision = async () =>
      (await lab.kubectl(['get', 'secrets', ...target, '-l', 'owner=helm', '-o', 'name'])).split('\n').length;
    const before = await revision();
    const { code, stderr } = await labInstall('--set', 'controller.replicas=two');
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^lab: the chart cannot be installed like this: .*at '\/controller\/replicas': got string, want integer/s,
    );
    assert.equal(await revision(), before);
  });

  test('a configuration that cannot work does not stop the running replicas, and the reason is told', async () => {
    const before = await podNames();
    const set = [controllerOnly, 'config.feature.enableIPv4=false', 'config.feature.enableIPv6=false'];
    const { programs } = lab;
    const request = { instance: instanceOf(lab.name), programs, set, progress: silent, rolloutLimitMs: 10_000 };
    await assert.rejects(install(request), (error) => {
      assert.ok(error instanceof LabFailure);
      assert.equal(error.message, 'waited 30 s for the roll-out, in vain');
      assert.match(
        error.detail,
        /^pod sallyport-controller-\S+ ended with code 2: .*enableIPv4 and enableIPv6 must not both be false/m,
      );
      return true;
    });
    const after = await podNames();
    assert.deepEqual(
      before.filter((pod) => !after.includes(pod)),
      [],
    );
    const { code, stderr } = await labInstall();
    assert.equal(code, 0, stderr);
  });

  test('without the release gateways and policies stay; a new one finds them and gives the same EIPs', async () => {
    const eips = () => lab.kubectl(['get', 'egresspolicies', '-o', 'jsonpath={.items[*].status.eip}']);
    const before = await eips();
    const uninstall = [lab.programs.helm, 'uninstall', release.name, ...target, '--wait'];
    await must('uninstall', uninstall, { env: helmEnv(instanceOf(lab.name)), timeoutMs: 330_000 });
    const kinds = 'pods,deployments,services,secrets,leases,roles,rolebindings,poddisruptionbudgets';
    await until({ what: 'an empty namespace', limitMs: 60_000, everyMs: 300 }, async () => {
      return (await lab.kubectl(['get', kinds, ...target, '-o', 'name'])) === '';
    });
    assert.equal(await eips(), before);
    const { code, stderr } = await labInstall();
    assert.equal(code, 0, stderr);
    assert.equal(await eips(), before);
  });

  test('the page tells how to remove everything, and nothing is left then', async () => {
    const page = readFileSync(join(root, 'docs', 'how-to', 'install.md'), 'utf8');
    const [, commands] = /To delete the objects too, permanently:\n\n```sh\n(.*?)```/s.exec(page) ?? [];
    assert.ok(commands !== undefined, 'the page has the commands');
    const path = [dirname(lab.programs.helm), dirname(lab.programs.kubectl), process.env.PATH].join(delimiter);
    const env = { PATH: path, ...helmEnv(instanceOf(lab.name)) };
    await must('remove everything as the page says', ['timeout', '300', 'sh', '-ec', commands], {
      env,
      timeoutMs: 330_000,
    });
    const left = await lab.kubectl(['api-resources', '--verbs=list', '-o', 'name']);
    assert.doesNotMatch(left, /egressgateway\.spidernet\.io|bkbcs\.tencent\.com/);
    const roles = 'clusterroles,clusterrolebindings';
    const webhooks = 'validatingwebhookconfigurations,mutatingwebhookconfigurations';
    assert.doesNotMatch(await lab.kubectl(['get', `namespaces,${roles},${webhooks}`, '-o', 'name']), /sallyport/);
  });
});
