/** Every feature of a policy in packets, as the outside sees them: TCP, UDP and ICMP, IPv4 and IPv6. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { addresses } from '../../lab/cluster/shape.ts';
import { must } from '../../lab/host/command.ts';
import { until } from '../../lab/host/wait.ts';
import { EgressWorld, eip, type Pair, patientMs, ways } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const egctl = join(import.meta.dirname, '..', '..', 'bin', 'egctl');
const clients = ['worker-1', 'worker-2', 'gateway-1', 'gateway-2'];
const second: Pair = { ipv4: '198.51.100.20', ipv6: '2001:db8:51::20' };
const third: Pair = { ipv4: '198.51.100.30', ipv6: '2001:db8:51::30' };
const overTcp = { ways: ways.filter(({ transport }) => transport === 'tcp') };
const pods = (labels: object) => ({ podSelector: { matchLabels: labels } });
const through = (gateway: string, number: number) => ({ egressGatewayName: gateway, egressIP: eip(number) });

describe('policies in packets', () => {
  let world: EgressWorld;
  tellOfLab('e2e-egress');
  before(async () => {
    world = await EgressWorld.start('e2e-egress');
    // More outside servers: TCP is served on every address of the outside.
    for (const { ipv4, ipv6 } of [second, third]) {
      await world.lab.exec('outside', ['ip', 'address', 'add', `${ipv4}/32`, 'dev', 'lo']);
      await world.lab.exec('outside', ['ip', 'address', 'add', `${ipv6}/128`, 'dev', 'lo']);
    }
    // A client has the name of its node.
    await world.clients(...clients.map((node) => ({ name: node, namespace: 'shop', node, labels: { team: 'shop' } })));
    await world.clients({ name: 'stranger', namespace: 'other', node: 'worker-1' });
    await world.gateway('main', { ipv4: ['10.77.0.100-10.77.0.119'], ipv6: ['fd77::100-fd77::113'] });
  });
  after(() => world?.stop());

  test('a pod without a policy leaves with the address of its node', async () => {
    for (const node of clients) await world.untilSource(node, world.node(node));
  });

  test('pods of a policy leave with its EIP, wherever they run; others do not; Programmed says when', async () => {
    await world.policy('shop/all', { ...through('main', 100), appliedTo: pods({ team: 'shop' }) });
    await world.untilPolicy('shop/all', 'Programmed', 'True');
    await world.lab.resetCounts();
    for (const node of clients) {
      const seen = await world.sources(node, { limitMs: patientMs });
      assert.deepEqual(seen, ['10.77.0.100', 'fd77::100', '10.77.0.100', 'fd77::100'], node);
    }
    for (const node of clients) {
      for (const host of [addresses.outside.ipv4, addresses.outside.ipv6]) {
        const { code, stdout } = await world.inPod(node, 'ping', '-c', '2', '-i', '0.2', '-W', '10', host);
        assert.equal(code, 0, stdout);
      }
    }
    assert.deepEqual(await world.strangers(eip(100)), []);
    await world.untilSource('stranger', world.node('worker-1'));
  });

  test('datagrams in fragments, large segments and path MTU discovery pass', async () => {
    // IPv6 routers do not fragment: the first datagram is lost, its sender is told the MTU of the tunnel and does better.
    const overUdp = ways.filter(({ transport }) => transport === 'udp');
    await world.untilSource('worker-1', eip(100), { ways: overUdp, bytes: 4_000 });
    const large = { ...overTcp, bytes: 1_000_000, limitMs: patientMs };
    assert.deepEqual(await world.sources('worker-1', large), ['10.77.0.100', 'fd77::100']);
    // 1472 bytes and 28 of headers fill the 1500 of the pod, not the 1450 of the tunnel.
    const { stdout } = await world.inPod(
      'worker-1',
      'ping',
      '-c',
      '2',
      '-M',
      'do',
      '-s',
      '1472',
      addresses.outside.ipv4,
    );
    assert.match(stdout, /(Frag needed and DF set|message too long|mtu ?= ?1450)/i);
  });

  test('a policy that is deleted lets its pods leave as before', async () => {
    await world.deletePolicies('shop/all');
    for (const node of clients) await world.untilSource(node, world.node(node));
  });

  test('destSubnet takes addresses, ranges and CIDRs; everything else is left alone', async () => {
    const destinations: readonly [string, string[]][] = [
      ['address', [second.ipv4, second.ipv6]],
      ['range', ['198.51.100.19-198.51.100.21', '2001:db8:51::1f-2001:db8:51::21']],
      ['CIDR', ['198.51.100.20/30', '2001:db8:51::20/124']],
    ];
    for (const [index, [form, destSubnet]] of destinations.entries()) {
      const number = 101 + index;
      await world.policy('shop/dest', { ...through('main', number), appliedTo: pods({ team: 'shop' }), destSubnet });
      await world.untilSource('worker-1', eip(number), { ...overTcp, to: second });
      assert.deepEqual(
        await world.sources('worker-1', { ...overTcp, to: third, limitMs: patientMs }),
        [world.node('worker-1').ipv4, world.node('worker-1').ipv6],
        form,
      );
    }
    await world.deletePolicies('shop/dest');
  });

  test('exceptSubnet leaves destinations alone, or to the next policy', async () => {
    const appliedTo = pods({ team: 'shop' });
    const exceptSubnet = [second.ipv4, second.ipv6, third.ipv4, third.ipv6];
    await world.policy('shop/first', { ...through('main', 100), appliedTo, exceptSubnet, priority: 1 });
    const destSubnet = [third.ipv4, third.ipv6];
    await world.policy('shop/next', { ...through('main', 101), appliedTo, destSubnet, priority: 2 });
    await world.untilSource('worker-2', eip(100));
    await world.untilSource('worker-2', eip(101), { ...overTcp, to: third });
    await world.untilSource('worker-2', world.node('worker-2'), { ...overTcp, to: second });
    await world.deletePolicies('shop/first', 'shop/next');
  });

  test('of two policies the lower priority number wins, and the other one when that is gone', async () => {
    const appliedTo = pods({ team: 'shop' });
    await world.policy('shop/low', { ...through('main', 100), appliedTo, priority: 10 });
    await world.untilSource('gateway-1', eip(100));
    await world.policy('shop/high', { ...through('main', 101), appliedTo, priority: 1 });
    await world.untilSource('gateway-1', eip(101));
    await world.untilPolicy('shop/low', 'Shadowed', 'True');
    await world.deletePolicies('shop/high');
    await world.untilSource('gateway-1', eip(100));
    await world.deletePolicies('shop/low');
  });

  test('a cluster policy picks namespaces; podSubnet picks addresses', async () => {
    const namespaceSelector = { matchLabels: { name: 'other' } };
    await world.policy('team', { ...through('main', 100), appliedTo: { namespaceSelector, podSelector: {} } });
    await world.untilSource('stranger', eip(100));
    const { ipv4, ipv6 } = world.client('worker-1');
    await world.policy('subnet', {
      ...through('main', 101),
      appliedTo: { podSubnet: [`${ipv4}-${ipv4}`, `${ipv6}/128`] },
    });
    await world.untilSource('worker-1', eip(101));
    await world.untilSource('worker-2', world.node('worker-2'), overTcp);
    await world.untilSource('stranger', eip(100));
    await world.deletePolicies('team', 'subnet');
  });

  test('useNodeIP leaves with the address of the gateway node, also instead of an EIP that the policy had', async () => {
    const appliedTo = pods({ team: 'shop' });
    await world.policy('shop/node', { ...through('main', 100), appliedTo });
    await world.untilSource('worker-1', eip(100));
    const egressIP = { useNodeIP: true };
    await world.policy('shop/node', { egressGatewayName: 'main', egressIP, appliedTo });
    await until({ what: 'the EIP to be given back', limitMs: 20_000 }, async () => {
      return (await world.policyStatus('shop/node')).eip === undefined;
    });
    const { node } = await world.policyStatus('shop/node');
    assert.ok(node);
    for (const client of clients) await world.untilSource(client, world.node(node));
    await world.deletePolicies('shop/node');
  });

  test('two policies share an EIP; one that is moved to another EIP follows', async () => {
    await world.policy('shop/one', { ...through('main', 100), appliedTo: pods({ app: 'worker-1' }) });
    await world.policy('shop/two', { ...through('main', 100), appliedTo: pods({ app: 'worker-2' }) });
    await world.untilSource('worker-1', eip(100));
    await world.untilSource('worker-2', eip(100));
    await world.policy('shop/two', { ...through('main', 105), appliedTo: pods({ app: 'worker-2' }) });
    await world.untilSource('worker-2', eip(105));
    assert.deepEqual(await world.sources('worker-1', { ...overTcp, limitMs: patientMs }), ['10.77.0.100', 'fd77::100']);
    await world.deletePolicies('shop/one', 'shop/two');
  });

  test('an EIP that was moved, given up and given again is that of all pods again, wherever it is now', async () => {
    const spec = { ...through('main', 108), appliedTo: pods({ team: 'shop' }) };
    await world.policy('shop/again', spec);
    for (const node of clients) await world.untilSource(node, eip(108), overTcp);
    const { node: from } = await world.policyStatus('shop/again');
    const to = from === 'gateway-1' ? 'gateway-2' : 'gateway-1';
    const move = ['vip', 'move', '--egressGatewayName', 'main', '--vip', eip(108).ipv4, '--targetNode', to];
    await must('move the EIP', [egctl, ...move], { env: { KUBECONFIG: world.lab.kubeconfig } });
    await until({ what: `the EIP to be on ${to}`, limitMs: 30_000 }, async () => {
      return (await world.policyStatus('shop/again')).node === to;
    });
    await world.deletePolicies('shop/again');
    for (const node of clients) await world.untilSource(node, world.node(node), overTcp);
    await world.policy('shop/again', spec);
    for (const node of clients) await world.untilSource(node, eip(108), overTcp);
    await world.deletePolicies('shop/again');
  });

  test('without a gateway node, traffic is dropped, or leaves with the node address if the policy says so', async () => {
    await world.gateway('nowhere', { ipv4: ['10.77.0.130'], ipv6: ['fd77::130'] }, { egress: 'nobody' });
    const nowhere = through('nowhere', 130);
    await world.policy('shop/drop', { ...nowhere, appliedTo: pods({ app: 'worker-1' }) });
    await world.policy('shop/open', { ...nowhere, appliedTo: pods({ app: 'worker-2' }), onUnavailable: 'NodeIP' });
    await world.untilPolicy('shop/drop', 'Allocated', 'False');
    await world.untilSource('worker-1', { ipv4: '(no answer)', ipv6: '(no answer)' });
    await world.lab.resetCounts();
    assert.deepEqual(
      await world.sources('worker-1'),
      Array.from(ways, () => '(no answer)'),
    );
    assert.deepEqual(await world.strangers(...clients.slice(1).map((name) => world.node(name))), []);
    await world.untilSource('worker-2', world.node('worker-2'));
    await world.deletePolicies('shop/drop', 'shop/open');
  });
});
