/** Traffic that is none of our business stays as it was while policies are in force: Services, hosts, other pods. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import { controlPort } from '../../lab/inside/pod-client.ts';
import { EgressWorld, eip } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const clients = ['worker-1', 'worker-2', 'gateway-1', 'gateway-2'];
const loadBalancerIp = '203.0.113.7';
const nodePort = 30_080;
const rpFilter = (device: string) => `/proc/sys/net/ipv4/conf/${device}/rp_filter`;

describe('other traffic', () => {
  let world: EgressWorld;
  let clusterIps: string[] = [];
  tellOfLab('e2e-coexist');
  before(async () => {
    world = await EgressWorld.start('e2e-coexist');
    await world.clients(...clients.map((node) => ({ name: node, namespace: 'shop', node, labels: { team: 'shop' } })));
    // The strictest setting that nodes may have: packets must come in by the device that leads to their source.
    for (const node of clients) {
      for (const device of ['all', 'eth0']) await world.lab.exec(node, ['sh', '-c', `echo 1 > ${rpFilter(device)}`]);
    }
    await world.clients({ name: 'bystander', namespace: 'other', node: 'worker-1' });
    await world.clients({ name: 'backend', namespace: 'other', node: 'gateway-2' });
    await world.lab.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'backend', namespace: 'other' },
      spec: {
        type: 'LoadBalancer',
        selector: { app: 'backend' },
        ipFamilyPolicy: 'RequireDualStack',
        ports: [{ port: 80, targetPort: controlPort, nodePort }],
      },
    });
    const status = { loadBalancer: { ingress: [{ ip: loadBalancerIp }] } };
    await world.lab.kubectl([
      ...['-n', 'other', 'patch', 'service', 'backend', '--subresource=status', '--type=merge'],
      ...['-p', JSON.stringify({ status })],
    ]);
    const path = 'jsonpath={.spec.clusterIPs[*]}';
    clusterIps = (await world.lab.kubectl(['-n', 'other', 'get', 'service', 'backend', '-o', path])).split(' ');
    await world.gateway('main', { ipv4: ['10.77.0.100'], ipv6: ['fd77::100'] });
    await world.policy('shop/all', {
      egressGatewayName: 'main',
      egressIP: eip(100),
      appliedTo: { podSelector: { matchLabels: { team: 'shop' } } },
    });
    await world.untilPolicy('shop/all', 'Programmed', 'True');
    for (const client of clients) await world.untilSource(client, eip(100));
  });
  after(() => world?.stop());

  const host = (ip: string) => (ip.includes(':') ? `[${ip}]` : ip);
  /** The address that a client is seen with; asked again for a while, because kube-proxy hears of a Service when it does. */
  const who = async (client: string, ip: string, port: number): Promise<string> => {
    const url = `http://${host(ip)}:${port}/who`;
    let said = '';
    return until({ what: `${client} to reach ${url}`, limitMs: 20_000, explain: () => said }, async () => {
      const { stdout, stderr } = await world.inPod(client, 'curl', '-sSf', '--max-time', '5', url);
      said = stderr;
      return stdout === '' ? undefined : (JSON.parse(stdout) as { address: string }).address;
    });
  };

  test('a Service is reached with the pod address, over both families and both modes of kube-proxy', async () => {
    for (const client of clients) {
      const { ipv4, ipv6 } = world.client(client);
      for (const ip of clusterIps) assert.equal(await who(client, ip, 80), ip.includes(':') ? ipv6 : ipv4, client);
    }
  });

  test('a pod is reached with the pod address', async () => {
    const backend = world.client('backend');
    for (const client of clients) {
      const { ipv4, ipv6 } = world.client(client);
      assert.equal(await who(client, backend.ipv4, controlPort), ipv4);
      assert.equal(await who(client, backend.ipv6, controlPort), ipv6);
    }
  });

  test('node ports and load balancer addresses lead to the backend as before', async () => {
    for (const client of clients) {
      for (const node of ['worker-1', 'gateway-1', 'gateway-2']) {
        assert.match(await who(client, world.node(node).ipv4, nodePort), /^10\./, `${client} by ${node}`);
      }
      assert.match(await who(client, loadBalancerIp, 80), /^10\./, `${client} by the load balancer address`);
    }
  });

  test('from outside, node ports work and an EIP offers none', async () => {
    const ask = (ip: string, seconds = 3) => [
      'curl',
      '-sS',
      '--max-time',
      `${seconds}`,
      `http://${ip}:${nodePort}/who`,
    ];
    assert.match(await world.lab.exec('outside', ask(world.node('gateway-1').ipv4, 20)), /address/);
    // curl's code for "no answer in time".
    await assert.rejects(world.lab.exec('outside', ask('10.77.0.100')), /code 28/);
    await world.lab.exec('outside', ['ping', '-c', '1', '-W', '10', '10.77.0.100']);
  });

  test('processes of the nodes and pods without a policy leave with the node address', async () => {
    await world.untilSource('bystander', world.node('worker-1'));
    for (const node of clients) {
      const { ipv4, ipv6 } = world.node(node);
      for (const [ip, own] of [
        [addresses.outside.ipv4, ipv4],
        [addresses.outside.ipv6, ipv6],
      ] as const) {
        const said = await world.lab.exec(node, ['curl', '-sS', `http://${host(ip)}:${ports.http}/`]);
        assert.equal((JSON.parse(said) as { address: string }).address, own, node);
      }
    }
  });

  test('names resolve for pods under a policy', async () => {
    for (const client of clients) {
      const { stdout } = await world.inPod(client, 'getent', 'hosts', 'backend.other.svc.cluster.local');
      assert.match(stdout, /fd96:/, client);
    }
  });

  test('a firewall rule in forward still applies to policy traffic', async () => {
    const script = `table inet foreign { chain forward { type filter hook forward priority filter; policy accept;
      ip saddr ${world.client('worker-1').ipv4} tcp dport ${ports.tcp} drop; }; }`;
    await world.lab.exec('worker-1', ['nft', '-f', '-'], script);
    const way = { transport: 'tcp', family: 4 } as const;
    await until({ what: 'the rule to stop the pod', limitMs: 10_000 }, async () => {
      return (await world.client('worker-1').source(world.question(way))) === '(no answer)';
    });
    await world.lab.exec('worker-1', ['nft', 'delete', 'table', 'inet', 'foreign']);
    await world.untilSource('worker-1', eip(100), { ways: [way] });
  });

  test('a policy that drops what all pods send outside cuts nobody off the API server, the controller least of all', async () => {
    await world.gateway('nowhere', { ipv4: ['10.77.0.110'] }, { egress: 'nobody' });
    const everyPod = { appliedTo: { podSelector: {} }, priority: 1 };
    await world.policy('all', { egressGatewayName: 'nowhere', onUnavailable: 'Drop', ...everyPod });
    const way = { transport: 'tcp', family: 4 } as const;
    await until({ what: 'the policy to stop a pod', limitMs: 30_000 }, async () => {
      return (await world.client('bystander').source(world.question(way))) === '(no answer)';
    });
    const path = 'jsonpath={.spec.clusterIP}';
    const ip = await world.lab.kubectl(['-n', 'default', 'get', 'service', 'kubernetes', '-o', path]);
    const code = ['curl', '-sk', '-o', '/dev/null', '-w', '%{http_code}', '--max-time', '20', `https://${ip}/version`];
    assert.match((await world.inPod('bystander', ...code)).stdout, /^[24]\d\d$/);
    // New processes of the controller have new connections only.
    await world.lab.kubectl(['-n', 'sallyport', 'rollout', 'restart', 'deployment', 'sallyport-controller']);
    const status = ['rollout', 'status', 'deployment', 'sallyport-controller', '--timeout=180s'];
    await world.lab.kubectl(['-n', 'sallyport', ...status]);
    await world.deletePolicies('all');
    await world.untilSource('bystander', world.node('worker-1'), { ways: [way] });
  });

  test('foreign rules are as they were', async () => {
    const foreign = async () => {
      const tables = (await world.lab.exec('worker-1', ['nft', 'list', 'tables'])).trim().split('\n');
      return tables.filter((line) => !line.includes('sallyport')).toSorted();
    };
    const before = await foreign();
    assert.ok(before.includes('table ip kube-proxy'), before.join(', '));
    await world.lab.kubectl(['-n', 'sallyport', 'rollout', 'restart', 'daemonset']);
    await world.lab.kubectl(['-n', 'sallyport', 'rollout', 'status', 'daemonset', '--timeout=180s']);
    assert.deepEqual(await foreign(), before);
    for (const device of ['all', 'eth0'])
      assert.equal(await world.lab.exec('worker-1', ['cat', rpFilter(device)]), '1\n');
  });
});
