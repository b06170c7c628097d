import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { instanceOf } from '../../lab/host/instance.ts';
import { until } from '../../lab/host/wait.ts';
import { writeOwnImage } from '../../lab/images.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { silently } from '../../lab/scenarios/scenario.ts';
import { wayOut } from '../../lab/scenarios/way-out.ts';
import { onePod, pod, podsOf, sh, workload } from './lab-objects.ts';

/** What Kubernetes promises to workloads holds in the lab: everything here is done by real parts. */
describe('workloads in the lab', () => {
  let lab: Lab;
  before(async () => {
    lab = await startLab({ name: 'e2e-workloads', proxyModeByNode: new Map([['worker-2', 'iptables']]) });
  });
  after(() => lab?.down());

  test('all nodes are Ready, dual stack, gateways labelled', async () => {
    const text = await lab.kubectl(['get', 'nodes', '-o', 'json']);
    const { items } = JSON.parse(text) as { items: NodeObject[] };
    const facts = items.map((node) => ({
      name: node.metadata.name,
      ready: node.status.conditions.find((condition) => condition.type === 'Ready')?.status,
      addresses: node.status.addresses.filter((a) => a.type === 'InternalIP').map((a) => a.address),
      podCidrs: node.spec.podCIDRs,
      egress: node.metadata.labels.egress,
      version: node.status.nodeInfo.kubeletVersion,
    }));
    const node = (number: number, name: string, egress: string | undefined) => ({
      name,
      ready: 'True',
      addresses: [`10.77.0.1${number}`, `fd77::1${number}`],
      podCidrs: [`10.244.${number}.0/24`, `fd44:0:0:${number}::/64`],
      egress,
      version: 'v1.36.3',
    });
    assert.deepEqual(facts, [
      node(1, 'gateway-1', 'true'),
      node(2, 'gateway-2', 'true'),
      node(3, 'worker-1', undefined),
      node(4, 'worker-2', undefined),
    ]);
  });

  test('kube-proxy runs in the mode that was asked for', async () => {
    const tables = (node: string) => lab.exec(node, ['nft', 'list', 'tables']);
    assert.match(await tables('worker-1'), /table ip kube-proxy\n/);
    assert.doesNotMatch(await tables('worker-2'), /table ip kube-proxy\n/);
    assert.match(await lab.exec('worker-2', ['iptables-save', '-t', 'nat']), /KUBE-SERVICES/);
  });

  test('a Deployment, a DaemonSet and a Job run', async () => {
    await lab.apply(workload('Deployment', 'sleepers', { replicas: 3 }), workload('DaemonSet', 'everywhere', {}), {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'sum' },
      spec: { template: { spec: { restartPolicy: 'Never', containers: [sh('echo $((6 * 7))')] } } },
    });
    await lab.kubectl(['rollout', 'status', 'deployment/sleepers', '--timeout=180s']);
    await lab.kubectl(['rollout', 'status', 'daemonset/everywhere', '--timeout=180s']);
    await lab.kubectl(['wait', '--for=condition=Complete', 'job/sum', '--timeout=180s']);
    assert.equal(await lab.kubectl(['logs', 'job/sum']), '42\n');
    const placed = await lab.kubectl([
      'get',
      'pods',
      '-l',
      'app=everywhere',
      '-o',
      'jsonpath={.items[*].spec.nodeName}',
    ]);
    assert.deepEqual(
      placed.split(' ').sort(),
      lab.status.nodes.map((node) => node.name),
    );
  });

  test('our own image is our own program from the working tree; an image nobody knows says so', async () => {
    const job = (name: string, image: string) => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name },
      spec: {
        template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image, args: ['--version'] }] } },
      },
    });
    await writeOwnImage(instanceOf(lab.name), lab.programs);
    await lab.apply(job('own', 'sallyport:any-tag'), job('unknown', 'nobody/knows:it'));
    await lab.kubectl(['wait', '--for=condition=Complete', 'job/own', '--timeout=180s']);
    assert.equal(await lab.kubectl(['logs', 'job/own']), '0.1.0\n');
    const reason = '{.items[0].status.containerStatuses[0].state.waiting.message}';
    const message = () => lab.kubectl(['get', 'pods', '-l', 'job-name=unknown', '-o', `jsonpath=${reason}`]);
    await until({ what: 'a message about the unknown image', limitMs: 30_000 }, async () =>
      /nobody\/knows/.test(await message()),
    );
  });

  test('kubectl exec passes stdin on and returns the exit code', async () => {
    const pod = await onePod(lab, 'sleepers');
    assert.equal(await lab.kubectl(['exec', '-i', pod, '--', 'tr', 'a-z', 'A-Z'], 'the way out\n'), 'THE WAY OUT\n');
    const ended = await lab.tryKubectl(['exec', pod, '--', 'sh', '-c', 'echo to-stderr >&2; exit 7']);
    assert.equal(ended.code, 7);
    assert.match(ended.stderr, /to-stderr/);
  });

  test('kubectl logs -f follows a running container line by line', async () => {
    await lab.apply(pod('talker', [sh('mkfifo /tmp/say; while :; do cat /tmp/say; done')]));
    await lab.kubectl(['wait', '--for=condition=Ready', 'pod/talker', '--timeout=180s']);
    const follower = spawn(lab.programs.kubectl, ['--kubeconfig', lab.kubeconfig, 'logs', '-f', 'talker']);
    let seen = '';
    follower.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const ended = once(follower, 'close');
    for (const word of ['one', 'two']) {
      // The second line is said only when the first was read: what is followed is a live stream.
      await lab.kubectl(['exec', 'talker', '--', 'sh', '-c', `echo ${word} > /tmp/say`]);
      await until({ what: `the line "${word}"`, limitMs: 15_000 }, () => seen.endsWith(`${word}\n`));
    }
    await lab.kubectl(['delete', 'pod', 'talker', '--now']);
    await ended;
    assert.equal(seen, 'one\ntwo\n');
  });

  test('readiness decides about endpoints, liveness restarts', async () => {
    const probe = { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 1, failureThreshold: 1 };
    const alive = { exec: { command: ['test', '!', '-e', '/tmp/dead'] }, periodSeconds: 1, failureThreshold: 1 };
    const labels = { app: 'probed' };
    await lab.apply(
      pod('probed', [{ ...sh('exec sleep infinity'), readinessProbe: probe, livenessProbe: alive }], { labels }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'probed' },
        spec: { selector: labels, ports: [{ port: 80 }] },
      },
    );
    await lab.kubectl(['wait', '--for=jsonpath={.status.phase}=Running', 'pod/probed', '--timeout=180s']);
    const ready = () =>
      lab.kubectl([
        'get',
        'endpointslices',
        '-l',
        'kubernetes.io/service-name=probed',
        '-o',
        'jsonpath={.items[*].endpoints[*].conditions.ready}',
      ]);
    await until({ what: 'a not-ready endpoint', limitMs: 15_000 }, async () => (await ready()) === 'false');
    await lab.kubectl(['exec', 'probed', '--', 'touch', '/tmp/ready']);
    await until({ what: 'a ready endpoint', limitMs: 15_000 }, async () => (await ready()) === 'true');
    await lab.kubectl(['exec', 'probed', '--', 'touch', '/tmp/dead']);
    await lab.kubectl([
      'wait',
      '--for=jsonpath={.status.containerStatuses[0].restartCount}=1',
      'pod/probed',
      '--timeout=180s',
    ]);
  });

  test('Services and DNS work from every node and from pods on it, over IPv4 and IPv6', async () => {
    const serve = `require('http').createServer((q, s) => s.end('web')).listen(8080, '::')`;
    const labels = { app: 'web' };
    await lab.apply(
      workload(
        'Deployment',
        'web',
        { replicas: 2 },
        { name: 'main', image: 'web', command: [process.execPath, '-e', serve] },
      ),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
        spec: { selector: labels, ipFamilyPolicy: 'RequireDualStack', ports: [{ port: 80, targetPort: 8080 }] },
      },
    );
    await lab.kubectl(['rollout', 'status', 'deployment/web', '--timeout=180s']);
    const clusterIps = JSON.parse(
      await lab.kubectl(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIPs}']),
    ) as string[];
    assert.equal(clusterIps.length, 2);
    for (const pod of await podsOf(lab, 'everywhere')) {
      for (const family of ['-4', '-6']) {
        const url = 'http://web.default.svc.cluster.local/';
        // All errors: the DNS of the cluster hears of a new Service a moment later.
        const curl = ['curl', '-sS', family, '--retry', '5', '--retry-all-errors', '--max-time', '10'];
        assert.equal(await lab.kubectl(['exec', pod.name, '--', ...curl, url]), 'web', `${pod.node} ${family} by name`);
      }
      for (const ip of clusterIps) {
        const url = `http://${ip.includes(':') ? `[${ip}]` : ip}/`;
        assert.equal(await lab.exec(pod.node, ['curl', '-sS', '--max-time', '10', url]), 'web', `${pod.node} to ${ip}`);
      }
      for (const server of ['10.96.0.10', 'fd96::a']) {
        const ask = `const r = new (require('dns').promises.Resolver)({ timeout: 2000 }); r.setServers(['${server.includes(':') ? `[${server}]` : server}']);
          r.resolve4('web.default.svc.cluster.local').then((a) => console.log(a.join()), (e) => { console.error(e.message); process.exit(1) })`;
        assert.equal(
          (await lab.exec(pod.node, [process.execPath, '-e', ask])).trim(),
          clusterIps[0],
          `DNS ${server} from ${pod.node}`,
        );
      }
    }
  });

  for (const step of wayOut.steps) test(`way out: ${step.title}`, async () => void (await step.act(lab, silently)));

  test('volumes and environment: ConfigMap, Secret, projected token, field references', async () => {
    await lab.apply(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { color: 'green' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key' }, stringData: { key: 'hush' } },
      pod(
        'reader',
        [
          {
            ...sh('exec sleep infinity'),
            env: [
              { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'POD_IPS', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } },
              { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
            ],
            volumeMounts: [
              { name: 'settings', mountPath: '/settings' },
              { name: 'key', mountPath: '/key', readOnly: true },
              { name: 'token', mountPath: '/token' },
            ],
          },
        ],
        {},
        {
          nodeName: 'worker-1',
          volumes: [
            { name: 'settings', configMap: { name: 'settings' } },
            { name: 'key', secret: { secretName: 'key', defaultMode: 0o400 } },
            {
              name: 'token',
              projected: {
                sources: [{ serviceAccountToken: { path: 'token', audience: 'outside', expirationSeconds: 600 } }],
              },
            },
          ],
        },
      ),
    );
    await lab.kubectl(['wait', '--for=condition=Ready', 'pod/reader', '--timeout=180s']);
    const inPod = (command: string) => lab.kubectl(['exec', 'reader', '--', 'sh', '-c', command]);
    assert.equal(await inPod('cat /settings/color /key/key'), 'greenhush');
    assert.match(await inPod('touch /key/x 2>&1; stat -Lc %a /key/key'), /Read-only file system\n400\n/);
    const ips = await lab.kubectl(['get', 'pod', 'reader', '-o', 'jsonpath={.status.podIPs[*].ip}']);
    assert.equal(await inPod('echo $POD_NAME $POD_IPS $NODE_NAME'), `reader ${ips.replace(' ', ',')} worker-1\n`);
    const [, claims = ''] = (await inPod('cat /token/token')).split('.');
    const token = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { aud: string[]; sub: string };
    assert.deepEqual([token.aud, token.sub], [['outside'], 'system:serviceaccount:default:default']);
    await lab.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { color: 'blue' } });
    await until(
      { what: 'the new ConfigMap in the pod', limitMs: 30_000, everyMs: 300 },
      async () => (await inPod('cat /settings/color')) === 'blue',
    );
  });

  test('capabilities are really dropped and added', async () => {
    const withCapabilities = (name: string, capabilities: object) =>
      pod(name, [{ ...sh('exec sleep infinity'), securityContext: { capabilities } }]);
    await lab.apply(
      withCapabilities('cap-default', {}),
      withCapabilities('cap-none', { drop: ['ALL'] }),
      withCapabilities('cap-net', { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] }),
    );
    const effective = async (name: string) => {
      await lab.kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=180s']);
      return (await lab.kubectl(['exec', name, '--', 'grep', 'CapEff', '/proc/self/status'])).trim().split(/\s+/)[1];
    };
    assert.equal(await effective('cap-default'), '00000000a80425fb');
    assert.equal(await effective('cap-none'), '0000000000000000');
    assert.equal(await effective('cap-net'), '0000000000003000');
    const mayUseNft = async (name: string) =>
      (await lab.tryKubectl(['exec', name, '--', 'nft', 'add', 'table', 'inet', 't'])).code === 0;
    assert.deepEqual([await mayUseNft('cap-default'), await mayUseNft('cap-net')], [false, true]);
    const mounted = await lab.tryKubectl(['exec', 'cap-net', '--', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']);
    assert.notEqual(mounted.code, 0);
  });
});

interface NodeObject {
  readonly metadata: { readonly name: string; readonly labels: Record<string, string> };
  readonly spec: { readonly podCIDRs: string[] };
  readonly status: {
    readonly conditions: { readonly type: string; readonly status: string }[];
    readonly addresses: { readonly type: string; readonly address: string }[];
    readonly nodeInfo: { readonly kubeletVersion: string };
  };
}
