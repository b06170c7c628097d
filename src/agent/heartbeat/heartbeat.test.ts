/** Real threads, real UDP sockets and the real kernel, on loopback addresses in place of tunnel addresses. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import type { OwnershipPlan } from '../../core/ownership/port.ts';
import { ip } from '../../core/testing/address.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { freePort } from '../../runtime/testing/free-port.ts';
import { Heartbeat, type ThreadEvent } from './heartbeat.ts';
import { probeKernel } from './kernel-probe.ts';

const eip = ip('10.6.1.1');
const names = ['n0', 'n1', 'n2'];
const addresses = new Map(names.map((name, index) => [name, `127.0.77.${index + 1}`]));
const plan: OwnershipPlan = {
  electorate: { generation: 1, voters: names, hasApi: false },
  gateways: names,
  nodes: [],
  eips: [{ eip, epoch: 0, candidates: names }],
};
// Slow, so that a busy machine does not make a difference: how fast it is, is measured in the lab.
const timing = { heartbeatMs: 100, heartbeatCount: 4, graceMs: 1_600 };
const keys = [new Uint8Array(32).fill(7)] as const;

interface Runner {
  readonly heartbeat: Heartbeat;
  readonly told: ThreadEvent[];
}
const open = new Set<Heartbeat>();
after(async () => {
  for (const heartbeat of open) await heartbeat.close();
});

const start = async (node: string, port: number): Promise<Runner> => {
  const told: ThreadEvent[] = [];
  const address = addresses.get(node) ?? assert.fail();
  const hooks = {
    told: (some: readonly ThreadEvent[]) => told.push(...some),
    failed: (error: Error) => assert.fail(error),
  };
  const heartbeat = new Heartbeat(
    {
      node,
      address,
      port,
      keys,
      timing,
      held: [],
      heldUntilMs: Infinity,
      promisedUntilMs: -Infinity,
      firstSignature: undefined,
    },
    hooks,
  );
  open.add(heartbeat);
  await heartbeat.listening();
  heartbeat.setAddresses(addresses, new Map(), new Set());
  heartbeat.take({ kind: 'plan', plan });
  return { heartbeat, told };
};
const isOwner = ({ told }: Runner): boolean => {
  const last = told.findLast((one) => one.kind === 'hold');
  return last?.kind === 'hold' && last.held.some(({ mode }) => mode === 'owned');
};

const lastEvent = ({ told }: Runner): Extract<ThreadEvent, { kind: 'event' }> => {
  const last = told.findLast((one) => one.kind === 'event');
  return last?.kind === 'event' ? last : assert.fail('nothing was told');
};

describe('Heartbeat', () => {
  it('gives an EIP one owner, and another one when its agent has been dead for the grace', async () => {
    const port = await freePort();
    const all = await Promise.all(names.map((name) => start(name, port)));
    // Which one is not asked: on a busy machine a thread may be late, and then another node's turn comes.
    await eventually('one owns', () => all.filter(isOwner).length === 1);
    const first = all.find(isOwner) ?? assert.fail();
    await first.heartbeat.close();
    const others = all.filter((one) => one !== first);
    await eventually('another one owns', () => others.filter(isOwner).length === 1);
    const taken = lastEvent(others.find(isOwner) ?? assert.fail());
    assert.deepEqual([taken.reason, taken.other === undefined], ['EipTakenOver', false]);
    assert.ok(taken.epoch > lastEvent(first).epoch);
  });

  it('fails when its address is not one of this node', async () => {
    const failed = Promise.withResolvers<Error>();
    const data = {
      node: 'n0',
      address: '192.0.2.1',
      port: await freePort(),
      keys,
      timing,
      held: [],
      heldUntilMs: Infinity,
      promisedUntilMs: -Infinity,
      firstSignature: undefined,
    };
    const heartbeat = new Heartbeat(data, { told: () => {}, failed: failed.resolve });
    open.add(heartbeat);
    await assert.rejects(heartbeat.listening(), /EADDRNOTAVAIL/);
    assert.match((await failed.promise).message, /EADDRNOTAVAIL/);
  });
});

describe('knock', () => {
  it('is answered by a kernel, whether or not somebody listens', async () => {
    const port = await freePort();
    const ask = (): Promise<void> =>
      new Promise((resolve) => probeKernel(systemClock, { address: '127.0.77.9', port, limitMs: 120_000 }, resolve));
    await ask();
    const server = createServer().listen(port, '127.0.77.9');
    await new Promise((resolve) => server.once('listening', resolve));
    await ask();
    server.close();
  });
});
