/**
 * Another machine on the segment of the gateway nodes takes an EIP that is in use. That is said with its MAC address on the
 * policy, the gateway and the node, in events and metrics, and no longer when the machine has let it go; the EIP stays.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { run } from '../../lab/host/command.ts';
import { until } from '../../lab/host/wait.ts';
import { EgressWorld, eip } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const egctl = join(import.meta.dirname, '..', '..', 'bin', 'egctl');
const own = eip(100);
const other = 'control-plane';
const cases = [
  { family: 'IPv4', address: own.ipv4, length: '24', nobody: '10.77.0.250', flags: [] },
  { family: 'IPv6', address: own.ipv6, length: '64', nobody: 'fd77::250', flags: ['nodad'] },
] as const;

describe('an EIP that is in use', () => {
  let world: EgressWorld;
  let mac: string;
  tellOfLab('e2e-in-use');
  before(async () => {
    world = await EgressWorld.start('e2e-in-use', { workers: 1 });
    await world.clients({ name: 'web', namespace: 'shop', node: 'worker-1' });
    await world.gateway('main', { ipv4: ['10.77.0.100-10.77.0.103'], ipv6: ['fd77::100-fd77::103'] });
    await world.policy('shop/web', {
      egressGatewayName: 'main',
      egressIP: own,
      appliedTo: { podSelector: { matchLabels: { app: 'web' } } },
    });
    await world.untilSource('web', own);
    await world.untilPolicy('shop/web', 'Programmed', 'True');
    const [link] = JSON.parse(await world.lab.exec(other, ['ip', '-j', 'link', 'show', 'eth0'])) as {
      address: string;
    }[];
    mac = link?.address ?? assert.fail('no address');
  });
  after(() => world?.stop());

  const ask = async (...args: readonly string[]) =>
    (await run([egctl, ...args], { env: { KUBECONFIG: world.lab.kubeconfig } })).stdout;
  const ip = (...argv: readonly string[]) => world.lab.exec(other, ['ip', ...argv]);
  /** Speaks in the name of the address: everybody on the segment hears the question for a machine that is not there. */
  const speak = (from: string, to: string) =>
    world.lab.exec(other, ['sh', '-c', `ping -I ${from} -c 1 -W 1 ${to} || true`]);
  interface Conditioned {
    readonly status?: { readonly conditions?: readonly Condition[] };
  }
  const conditionOf = async (kind: string, name: string, type: string): Promise<Condition | undefined> => {
    const text = await world.lab.kubectl(['-n', 'shop', 'get', kind, name, '-o', 'json']);
    return (JSON.parse(text) as Conditioned).status?.conditions?.find((condition) => condition.type === type);
  };
  const untilSaid = async (isInUse: boolean): Promise<void> => {
    let seen: unknown;
    const wait = {
      what: `EipInUse ${isInUse ? 'on' : 'off'}`,
      limitMs: 60_000,
      everyMs: 50,
      explain: () => JSON.stringify(seen),
    };
    await until(wait, async () => {
      const policy = await conditionOf('egresspolicy', 'web', 'Programmed');
      const gateway = await conditionOf('egressgateway', 'main', 'Ready');
      seen = [policy, gateway];
      const says = (one: Condition | undefined) =>
        isInUse
          ? one?.status === 'False' && one.reason === 'EipInUse' && one.message.includes(mac)
          : one?.status === 'True';
      return says(policy) && says(gateway);
    });
  };
  const eventsOf = async (reason: string, address: string): Promise<readonly Event[]> => {
    const text = await world.lab.kubectl(['get', 'events', '-A', `--field-selector=reason=${reason}`, '-o', 'json']);
    return (JSON.parse(text) as { items: Event[] }).items.filter(({ message }) => message.includes(address));
  };
  const take = async (t: TestContext, address: string, length: string, flags: readonly string[]): Promise<void> => {
    t.after(() => ip('address', 'delete', `${address}/${length}`, 'dev', 'eth0').catch(() => {}));
    await ip('address', 'add', `${address}/${length}`, 'dev', 'eth0', ...flags);
  };

  for (const { family, address, length, nobody, flags } of cases) {
    test(`is said within 2 s when another machine takes it and speaks, and no longer when it is gone (${family})`, async (t) => {
      const startedAtMs = Date.now();
      await take(t, address, length, flags);
      await speak(address, nobody);
      await untilSaid(true);
      t.diagnostic(`the conditions of policy and gateway say so after ${Date.now() - startedAtMs} ms`);
      const events = await until({ what: 'events', limitMs: 30_000 }, async () => {
        const found = await eventsOf('EipInUse', address);
        const kinds = new Set(found.map(({ involvedObject: { kind } }) => kind));
        return kinds.isSupersetOf(new Set(['EgressPolicy', 'EgressGateway', 'EgressTunnel'])) ? found : undefined;
      });
      for (const { message } of events) assert.match(message, new RegExp(mac));
      const times = events.map(({ eventTime, involvedObject: { kind } }) => {
        return `${kind} ${Date.parse(eventTime ?? '') - startedAtMs} ms`;
      });
      t.diagnostic(`events: ${times.join(', ')}`);
      const status = await ask('status');
      assert.match(status, /EipInUse/);
      assert.match(status, new RegExp(mac));

      await ip('address', 'delete', `${address}/${length}`, 'dev', 'eth0');
      const goneAtMs = Date.now();
      await untilSaid(false);
      t.diagnostic(`the conditions say that it is over ${Date.now() - goneAtMs} ms after it is`);
      await until({ what: 'the event that it is over', limitMs: 30_000 }, async () => {
        return (await eventsOf('EipConflictEnded', address)).some(({ message }) => message.includes(mac));
      });
      await world.untilSource('web', own);
    });

    test(`is found in its round when the machine that takes it says nothing by itself (${family})`, async (t) => {
      await take(t, address, length, flags);
      const startedAtMs = Date.now();
      await untilSaid(true);
      t.diagnostic(`found after ${Date.now() - startedAtMs} ms`);
      await ip('address', 'delete', `${address}/${length}`, 'dev', 'eth0');
      await untilSaid(false);
    });
  }

  test('is not to be had by duplicate address detection', async (t) => {
    await world.lab.exec(other, ['sysctl', '-qw', 'net.ipv6.conf.eth0.accept_dad=1']);
    t.after(() => ip('address', 'delete', `${own.ipv6}/64`, 'dev', 'eth0').catch(() => {}));
    await ip('address', 'add', `${own.ipv6}/64`, 'dev', 'eth0');
    await until({ what: 'the kernel of the other machine to give it up', limitMs: 30_000 }, async () => {
      return (await ip('-6', 'address', 'show', 'dev', 'eth0')).includes('dadfailed');
    });
    const condition = await conditionOf('egresspolicy', 'web', 'Programmed');
    assert.equal(condition?.status, 'True');
  });

  test('is not said of a node of ours when the EIP moves', async () => {
    for (const node of ['gateway-1', 'gateway-2', 'gateway-1']) {
      await ask('vip', 'move', '--egressGatewayName', 'main', '--vip', own.ipv4, '--targetNode', node);
      await until({ what: `the EIP to be on ${node}`, limitMs: 30_000 }, async () => {
        return (await world.policyStatus('shop/web')).node === node;
      });
      await world.untilPolicy('shop/web', 'Programmed', 'True');
      await world.untilSource('web', own);
    }
    const since = (await eventsOf('EipInUse', own.ipv4)).filter(({ message }) => !message.includes(mac));
    assert.deepEqual(since, []);
  });
});

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}
interface Event {
  readonly message: string;
  readonly eventTime?: string;
  readonly involvedObject: { readonly kind: string };
}
