import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { bothWays, setCuts } from '../../lab/faults/cuts.ts';
import { until } from '../../lab/host/wait.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { Observer } from '../../lab/observer/observer.ts';

/** Power off, hang and reboot are different things, and Kubernetes reacts to each as it does in a data centre. */
describe('power and restarts in the lab', () => {
  let lab: Lab;
  const ready = (node: string, status: string) =>
    lab.kubectl(['wait', `--for=condition=Ready=${status}`, `node/${node}`, '--timeout=180s']);
  const answersPing = async (node: string) => {
    const address = lab.status.nodes.find((candidate) => candidate.name === node)?.ipv4 ?? assert.fail(node);
    const text = await lab.exec('outside', ['sh', '-c', `ping -c1 -W5 ${address} >/dev/null && echo yes || echo no`]);
    return text.trim();
  };
  const podsOn = async (selector: string) => {
    const range = '{range .items[*]}{.metadata.name} {.spec.nodeName} {.metadata.deletionTimestamp}{"\\n"}{end}';
    const text = await lab.kubectl(['get', 'pods', '-l', selector, '-o', `jsonpath=${range}`]);
    return text
      .trim()
      .split('\n')
      .map((line) => {
        const [name = '', node = '', deleted = ''] = line.split(' ');
        return { name, node, isDeleted: deleted !== '' };
      });
  };

  before(async () => {
    lab = await startLab({ name: 'e2e-power', gateways: 1, workers: 2 });
    await lab.apply(mover, resident);
    await lab.kubectl(['rollout', 'status', 'deployment/mover', '--timeout=180s']);
    await lab.kubectl(['rollout', 'status', 'daemonset/resident', '--timeout=180s']);
  });
  after(() => lab?.down());

  test('off: the node is silent and NotReady, its Deployment pods move, its DaemonSet pods stay; on: it is back', async () => {
    const [{ node, name: lost } = assert.fail()] = await podsOn('app=mover');
    const resident = (await podsOn('app=resident')).find((pod) => pod.node === node) ?? assert.fail();
    await lab.power('off', node);
    assert.equal(await answersPing(node), 'no');
    await ready(node, 'Unknown');
    await until({ what: 'the pod on another node', limitMs: 60_000, everyMs: 300 }, async () =>
      (await podsOn('app=mover')).some(
        (pod) => pod.name !== lost && pod.node !== node && pod.node !== '' && !pod.isDeleted,
      ),
    );
    const kept = (await podsOn('app=resident')).find((pod) => pod.name === resident.name);
    assert.deepEqual(kept, resident, 'a DaemonSet pod tolerates an unreachable node');

    await lab.power('on', node);
    await ready(node, 'True');
    assert.equal(await answersPing(node), 'yes');
    await until({ what: 'the evicted pod to be gone', limitMs: 60_000, everyMs: 300 }, async () =>
      (await podsOn('app=mover')).every((pod) => pod.name !== lost),
    );
    await lab.kubectl(['wait', '--for=condition=Ready', `pod/${resident.name}`, '--timeout=180s']);
  });

  test('hang: the kernel still answers while the node is NotReady; on: it goes on', async () => {
    await lab.power('hang', 'worker-2');
    await ready('worker-2', 'Unknown');
    assert.equal(await answersPing('worker-2'), 'yes');
    await lab.power('on', 'worker-2');
    await ready('worker-2', 'True');
  });

  test('reboot: kernel state is lost, the node comes back and starts its pods anew', async () => {
    const pod = (await podsOn('app=resident')).find((candidate) => candidate.node === 'worker-1') ?? assert.fail();
    const restarts = () =>
      lab.kubectl(['get', 'pod', pod.name, '-o', 'jsonpath={.status.containerStatuses[0].restartCount}']);
    const before = Number(await restarts());
    await lab.exec('worker-1', ['nft', 'add', 'table', 'inet', 'left-behind']);
    await lab.power('reboot', 'worker-1');
    await until(
      { what: 'the pod to be started again', limitMs: 60_000, everyMs: 300 },
      async () => Number(await restarts()) > before,
    );
    await lab.kubectl(['wait', '--for=condition=Ready', `pod/${pod.name}`, '--timeout=180s']);
    await ready('worker-1', 'True');
    assert.doesNotMatch(await lab.exec('worker-1', ['nft', 'list', 'tables']), /left-behind/);
    assert.equal(await lab.kubectl(['exec', pod.name, '--', 'echo', 'here']), 'here\n');
  });

  test('API server and etcd restart; the cluster goes on', async () => {
    for (const part of ['kube-apiserver', 'etcd', 'kube-controller-manager', 'kube-scheduler'] as const) {
      await lab.restart(part);
      await until(
        { what: `an answer after the restart of ${part}`, limitMs: 30_000 },
        async () => (await lab.tryKubectl(['get', '--raw', '/readyz'])).stdout === 'ok',
      );
    }
    await lab.kubectl(['scale', 'deployment/mover', '--replicas=2']);
    await lab.kubectl(['rollout', 'status', 'deployment/mover', '--timeout=180s']);
  });

  test('cuts: packets of one way are lost, of the tunnel only, or none', async () => {
    const isHeard = async () => {
      // Nobody listens on the port of the tunnel here: a packet that arrives is refused, and that comes back.
      const script = `import dgram from 'node:dgram';
        const socket = dgram.createSocket('udp4');
        socket.connect(7789, '10.77.0.12', () => setInterval(() => socket.send('x'), 100));
        socket.on('error', () => { console.log('heard'); process.exit(); });
        setTimeout(() => { console.log('lost'); process.exit(); }, 3_000);`;
      const argv = [process.execPath, '--input-type=module', '-e', script];
      return (await lab.exec('gateway-1', argv)).trim();
    };
    assert.deepEqual([await answersPing('worker-1'), await isHeard()], ['yes', 'heard']);
    await setCuts(lab, bothWays('gateway-1', 'worker-1', 'tunnel'));
    assert.deepEqual([await answersPing('worker-1'), await isHeard()], ['yes', 'lost']);
    await setCuts(lab, [{ from: 'worker-1', to: 'outside', what: 'everything' }]);
    assert.deepEqual([await answersPing('worker-1'), await isHeard()], ['no', 'heard']);
    await setCuts(lab, []);
    assert.deepEqual([await answersPing('worker-1'), await isHeard()], ['yes', 'heard']);
  });

  test('the observer sees who uses an address, and that it moves', async () => {
    const address = '10.77.0.150';
    const use = (node: string) => lab.exec(node, ['ping', '-c', '1', '-W', '10', '-I', address, '10.77.0.1']);
    const observer = new Observer(lab);
    try {
      for (const node of ['worker-1', 'worker-2']) {
        await lab.exec(node, ['ip', 'address', 'add', `${address}/32`, 'dev', 'eth0']);
        await use(node);
        await lab.exec(node, ['ip', 'address', 'delete', `${address}/32`, 'dev', 'eth0']);
      }
      const macOf = async (node: string) => (await lab.exec(node, ['cat', '/sys/class/net/eth0/address'])).trim();
      const [from, to] = [await macOf('worker-1'), await macOf('worker-2')];
      assert.deepEqual(
        observer.handOvers(address, 0).map((handOver) => [handOver.from, handOver.to, handOver.mixedMs]),
        [[from, to, 0]],
      );
      assert.equal(observer.lostFrames, 0);
    } finally {
      observer.stop();
    }
  });

  test('asking for the state a node is in, or for an unknown node, changes nothing and says so', async () => {
    await assert.rejects(lab.power('on', 'worker-1'), /node worker-1 is on already/);
    await assert.rejects(lab.power('off', 'worker-9'), /no node "worker-9"; it has gateway-1, worker-1, worker-2/);
  });
});

const sleeper = { name: 'main', image: 'any', command: ['sh', '-c', 'trap "exit 0" TERM; sleep infinity & wait'] };

/** Leaves an unreachable node after a second. */
const mover = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'mover' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'mover' } },
    template: {
      metadata: { labels: { app: 'mover' } },
      spec: {
        terminationGracePeriodSeconds: 2,
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        tolerations: ['not-ready', 'unreachable'].map((taint) => ({
          key: `node.kubernetes.io/${taint}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 1,
        })),
        containers: [sleeper],
      },
    },
  },
};

const resident = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'resident' },
  spec: {
    selector: { matchLabels: { app: 'resident' } },
    template: {
      metadata: { labels: { app: 'resident' } },
      spec: { terminationGracePeriodSeconds: 2, containers: [sleeper] },
    },
  },
};
