/**
 * What is wrong around a node is told with a typed reason, in the report of the node and in the policies concerned, and
 * harms nothing else: an EIP that another machine has, a missing interface, no tunnel address left, a kernel that refuses
 * our table. Each heals by itself when its cause is gone.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { LabFailure } from '../../lab/host/failure.ts';
import { until } from '../../lab/host/wait.ts';
import { EgressWorld, eip, type Pair } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const through = (number: number, app: string) => ({
  egressGatewayName: 'main',
  egressIP: eip(number),
  appliedTo: { podSelector: { matchLabels: { app } } },
});
const agent = /sallyport\S* agent|main\S* agent/;
/** The EIP that another machine has for a while. */
const taken = eip(102);
const noAnswer: Pair = { ipv4: '(no answer)', ipv6: '(no answer)' };

describe('bad input', () => {
  let world: EgressWorld;
  tellOfLab('e2e-bad-input');
  before(async () => {
    const set = [
      'config.feature.tunnelDetectCustomInterface[0].nodeSelector.lan=second',
      'config.feature.tunnelDetectCustomInterface[0].interfaceName=eth1',
      // Six addresses of one family and seven of the other, for four nodes.
      'config.feature.tunnelIpv4Subnet=172.31.0.0/29',
      'config.feature.tunnelIpv6Subnet=fd11::/125',
    ];
    world = await EgressWorld.start('e2e-bad-input', { set });
    await world.clients(...['worker-1', 'worker-2'].map((node) => ({ name: node, namespace: 'shop', node })));
    await world.clients({ name: 'third', namespace: 'shop', node: 'worker-1' });
    await world.gateway('main', { ipv4: ['10.77.0.100-10.77.0.103'], ipv6: ['fd77::100-fd77::103'] });
    await world.policy('shop/one', through(100, 'worker-1'));
    await world.policy('shop/two', through(101, 'worker-2'));
    await world.untilSource('worker-1', eip(100));
    await world.untilSource('worker-2', eip(101));
  });
  after(() => world?.stop());
  // Whatever a test did to one node or policy is over when it ends, and the other one has not noticed.
  afterEach(async () => {
    await world.untilSource('worker-1', eip(100));
    await world.untilSource('worker-2', eip(101));
  });

  const report = async (node: string): Promise<TunnelStatus> => {
    const text = await world.lab.kubectl(['get', 'egresstunnel', node, '-o', 'json']);
    // The server has checked it against the schema of the kind.
    return (JSON.parse(text) as { status?: TunnelStatus }).status ?? {};
  };
  const untilProblem = async (node: string, reason: string): Promise<Problem> => {
    let seen: TunnelStatus = {};
    const wait = { what: `${node} to report ${reason}`, limitMs: 30_000, explain: () => JSON.stringify(seen) };
    return until(wait, async () => {
      seen = await report(node);
      return seen.report?.problems?.find((problem) => problem.reason === reason);
    });
  };
  const untilProgrammed = async (policy: string, reason: string): Promise<string> => {
    let seen: unknown;
    const wait = { what: `${policy} not Programmed: ${reason}`, limitMs: 30_000, explain: () => JSON.stringify(seen) };
    return until(wait, async () => {
      const { conditions = [] } = await world.policyStatus(policy);
      seen = conditions;
      const found = conditions.find(({ type }) => type === 'Programmed');
      return found?.status === 'False' && found.reason === reason ? found.message : undefined;
    });
  };
  /** Every source that is seen while something is broken is a right one. */
  const expectNoStrangers = async () => assert.deepEqual(await world.strangersAsking(eip(100), eip(101)), []);

  test('an EIP that another machine answers for is not claimed, and its MAC address is told', async () => {
    const other = 'control-plane';
    const inOutside = (...argv: readonly string[]) => world.lab.exec('outside', argv);
    const [link] = JSON.parse(await world.lab.exec(other, ['ip', '-j', 'link', 'show', 'eth0'])) as {
      address: string;
    }[];
    const mac = link?.address ?? 'no address';
    await world.lab.exec(other, ['ip', 'address', 'add', `${taken.ipv4}/24`, 'dev', 'eth0']);
    await world.lab.exec(other, ['ip', 'address', 'add', `${taken.ipv6}/64`, 'dev', 'eth0', 'nodad']);
    await world.policy('shop/three', through(102, 'third'));

    assert.match(await untilProgrammed('shop/three', 'EipInUse'), new RegExp(mac));
    const { node = '' } = await world.policyStatus('shop/three');
    const problem = await untilProblem(node, 'EipInUse');
    assert.match(problem.message, new RegExp(mac));
    assert.equal(problem.policy, 'shop/three');
    const { report: { eips = [] } = {} } = await report(node);
    assert.deepEqual(
      eips.filter(({ ip }) => ip === taken.ipv4 || ip === taken.ipv6),
      [],
    );
    await until({ what: 'events that name the machine', limitMs: 10_000 }, async () => {
      const events = await world.lab.kubectl(['get', 'events', '-A', '--field-selector=reason=EipInUse', '-o', 'json']);
      const { items } = JSON.parse(events) as { items: { message: string; involvedObject: { kind: string } }[] };
      const told = (kind: string, address: string) =>
        items.some(
          ({ message, involvedObject }) =>
            involvedObject.kind === kind && message.includes(mac) && message.includes(address),
        );
      return told('EgressTunnel', taken.ipv4) && told('EgressTunnel', taken.ipv6) && told('EgressPolicy', 'is in use');
    });
    await world.lab.resetCounts();
    await world.untilSource('third', noAnswer);
    await expectNoStrangers();
    for (const [ping, address] of [
      ['-4', taken.ipv4],
      ['-6', taken.ipv6],
    ] as const) {
      await inOutside('ping', ping, '-c', '1', '-W', '10', address);
      assert.match(await inOutside('ip', 'neigh', 'show', address), new RegExp(mac), 'the machine keeps its address');
    }

    await world.lab.exec(other, ['ip', 'address', 'delete', `${taken.ipv4}/24`, 'dev', 'eth0']);
    await world.lab.exec(other, ['ip', 'address', 'delete', `${taken.ipv6}/64`, 'dev', 'eth0']);
  });

  test('an interface that is missing, or has no address, stops the pods of its node and nobody else', async () => {
    await world.lab.resetCounts();
    await world.lab.kubectl(['label', 'node', 'worker-2', 'lan=second']);
    assert.match((await untilProblem('worker-2', 'ParentInterfaceMissing')).message, /eth1/);
    await untilProgrammed('shop/two', 'ParentInterfaceMissing');
    await world.untilSource('worker-2', noAnswer);
    await world.lab.exec('worker-2', ['ip', 'link', 'add', 'eth1', 'type', 'bridge']);
    await world.lab.exec('worker-2', ['ip', 'link', 'set', 'eth1', 'up']);
    await untilProblem('worker-2', 'ParentAddressMissing');
    await world.untilSource('worker-1', eip(100));
    await expectNoStrangers();
    await world.lab.kubectl(['label', 'node', 'worker-2', 'lan-']);
    await world.untilPolicy('shop/two', 'Programmed', 'True');
    await world.lab.exec('worker-2', ['ip', 'link', 'delete', 'eth1']);
  });

  test('a node for which no tunnel address is left is told so, and gets one when there is', async () => {
    const ghosts = Array.from({ length: 4 }, (_, index) => `ghost-${index + 1}`);
    await world.lab.apply(...ghosts.map((name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } })));
    const conditionOf = async (node: string) =>
      (await report(node)).conditions?.find(({ type }) => type === 'Allocated');
    await until({ what: 'the range to be used up', limitMs: 20_000 }, async () => {
      return (await conditionOf('ghost-4'))?.reason === 'TunnelRangeExhausted';
    });
    await world.lab.resetCounts();
    await world.lab.kubectl(['delete', 'egresstunnel', 'worker-2', '--timeout=180s']);
    await untilProblem('worker-2', 'TunnelAddressMissing');
    assert.equal((await conditionOf('worker-2'))?.reason, 'TunnelRangeExhausted');
    await untilProgrammed('shop/two', 'TunnelAddressMissing');
    await world.untilSource('worker-2', noAnswer);
    await world.untilSource('worker-1', eip(100));
    await expectNoStrangers();
    await world.lab.kubectl(['delete', 'node', ...ghosts]);
    await world.untilPolicy('shop/two', 'Programmed', 'True');
  });

  test('a kernel that refuses our table is told, and gets it when it no longer does', async () => {
    const nft = (script: string) => world.lab.exec('worker-2', ['nft', '-f', '-'], script);
    // A hook has 1024 places. Others take them all; while the agent is away our table goes, and they take its places too.
    const chain = (name: string) => `chain inet crowd ${name} { type filter hook prerouting priority 300; }`;
    const many = Array.from({ length: 1_000 }, (_, index) => `add ${chain(`c${index}`)}`);
    await nft(['add table inet crowd', ...many, ''].join('\n'));
    const isFull = async (name: string): Promise<boolean> => {
      try {
        await nft(`add ${chain(name)}\n`);
        return false;
      } catch (error) {
        // Anything else is a fault of the test.
        if (error instanceof LabFailure && error.detail.includes('Argument list too long')) return true;
        throw error;
      }
    };
    const fill = async (prefix: string) => {
      for (let index = 0; !(await isFull(`${prefix}${index}`)); index += 1) assert.ok(index < 1_024);
    };
    await fill('d');
    assert.ok((await world.lab.kill('worker-2', agent)) > 0);
    await nft('delete table inet sallyport\n');
    await fill('e');

    assert.match((await untilProblem('worker-2', 'NftRefused')).message, /Argument list too long/);
    await untilProgrammed('shop/two', 'NftRefused');
    await world.untilSource('worker-1', eip(100));
    await world.untilPolicy('shop/one', 'Programmed', 'True');
    await nft('delete table inet crowd\n');
    await world.untilPolicy('shop/two', 'Programmed', 'True');
  });

  test('the EIP is claimed when the other machine no longer has it', async () => {
    // It is asked for again every 30 s; the tests before this one have taken most of that.
    await until({ what: 'the EIP to be claimed', limitMs: 60_000 }, async () => {
      const { conditions = [] } = await world.policyStatus('shop/three');
      return conditions.some(({ type, status }) => type === 'Programmed' && status === 'True');
    });
    await world.untilSource('third', taken);
  });
});

interface Problem {
  readonly reason: string;
  readonly message: string;
  readonly policy?: string;
}
interface TunnelStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  readonly report?: { readonly eips?: readonly { readonly ip: string }[]; readonly problems?: readonly Problem[] };
}
