import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import { nodeGroupKey } from '../../core/ownership/node-group.ts';
import type { EipHold, HoldMode } from '../../core/ownership/port.ts';
import { ip } from '../../core/testing/address.ts';
import { createFakeGate } from '../../dataplane/gate/testing/fake-gate.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { GateController, type GateControllerDeps } from './gate-controller.ts';

const [eip, pair, other] = [ip('10.6.0.1'), ip('fd06::1'), ip('10.6.0.2')];
const claim = (one: Ip): Claim => ({ ip: one, interfaces: ['eth0'] });
const both = new Map([
  [eip, [claim(eip), claim(pair)]],
  [other, [claim(other)]],
]);
const held = (one: Ip, mode: HoldMode = 'owned'): EipHold => ({ eip: one, epoch: 4, mode });
const leaseMs = 1_000;
const handBackMs = 100;

const open = async (before: readonly EipHold[] = [], bring: GateControllerDeps['bring'] = () => undefined) => {
  const clock = new ManualClock();
  const gate = createFakeGate(clock);
  await gate.prepare();
  const said: string[] = [];
  let announced: readonly Ip[] = [];
  let opened: readonly Ip[] | undefined;
  const announcer = {
    apply: (claims: readonly Claim[]) => {
      const now = claims.map((one) => one.ip);
      for (const one of now) if (!announced.includes(one)) said.push(`announce ${one}`);
      announced = now;
      return { refused: [] };
    },
    repeat: (claims: readonly Claim[]) => {
      for (const one of claims) if (announced.includes(one.ip)) said.push(`announce ${one.ip}`);
    },
  };
  const gateController = new GateController(
    {
      gateSets: gate,
      announcer,
      clock,
      leaseMs,
      handBackMs,
      bring,
      onLease: () => {},
      onOpened: (ips) => {
        opened = ips;
      },
      onPrepared: (eips) => said.push(`prepared ${eips.join()}`),
      onRefused: (why) => said.push(`refused ${why}`),
    },
    { held: before, untilMs: leaseMs },
  );
  return { clock, gate, gateController, said, opened: () => opened };
};

describe('Grip', () => {
  it('opens the gate for both addresses of a pair, announces them, and shuts it again', async () => {
    const { gate, gateController, said } = await open();
    gateController.setReady(both);
    gateController.hold([held(eip)]);
    assert.deepEqual(gate.answered(), [eip, pair]);
    assert.deepEqual(said, [`announce ${eip}`, `announce ${pair}`]);
    gateController.hold([]);
    assert.deepEqual([gate.answered(), gate.sent()], [[], []]);
  });

  it('tells the kernel only what is new to it, but everything at a renewal and after it refused', async () => {
    const { clock, gate, gateController, said } = await open();
    gateController.setReady(both);
    gateController.hold([held(eip)]);
    await clock.advance(0.6 * leaseMs);
    gateController.hold([held(eip)]);
    await clock.advance(0.6 * leaseMs);
    assert.deepEqual(gate.sent(), [], 'the lease is that of the first time');
    gateController.renew();
    assert.deepEqual(gate.sent(), [eip, pair]);
    gate.tamper();
    gateController.hold([held(eip), held(other)]);
    await gate.prepare();
    gateController.hold([held(eip), held(other)]);
    assert.deepEqual(gate.answered(), [eip, pair, other]);
    assert.ok(said.includes('refused no such file or directory'));
  });

  it('stays shut for what the network is being asked about, though it is owned and its connections are brought', async () => {
    const asked: (readonly Ip[])[] = [];
    const { gate, gateController, said, opened } = await open([], (ips) => {
      asked.push(ips);
      return undefined;
    });
    gateController.setReady(new Map(), new Map([[eip, [claim(eip), claim(pair)]]]));
    gateController.hold([held(eip)]);
    gateController.renew();
    assert.deepEqual([gate.answered(), gate.sent(), said, asked], [[], [], [], [[eip, pair]]]);
    gateController.setReady(new Map([[eip, [claim(eip)]]]), new Map([[eip, [claim(pair)]]]));
    assert.deepEqual([gate.answered(), gate.sent(), opened()], [[], [], []], 'half a pair is not enough');
    gateController.setReady(both);
    assert.deepEqual(
      [gate.answered(), opened()],
      [
        [eip, pair],
        [eip, pair],
      ],
    );
    assert.deepEqual(said, [`announce ${eip}`, `announce ${pair}`]);
  });

  it('holds a node group, for which no connection is brought and nothing goes to the other node of a move', async () => {
    const group = nodeGroupKey({ gateway: 'out', node: 'a' });
    const asked: (readonly Ip[])[] = [];
    const { gate, gateController, said } = await open([], (ips) => {
      asked.push(ips);
      return undefined;
    });
    gateController.setHops(new Map([['b', [ip('fd31::2')]]]));
    gateController.setReady(new Map([[group, []]]));
    gateController.hold([{ ...held(group, 'prepared'), other: 'b' }]);
    assert.deepEqual([said, asked, [...gate.others()]], [[`prepared ${group}`], [], []]);
    gateController.hold([held(group)]);
    assert.deepEqual([gate.answered(), asked], [[group], []]);
  });

  it('carries and prepares without answering', async () => {
    const { gate, gateController, said } = await open();
    gateController.setReady(both);
    gateController.hold([held(eip, 'carried'), held(other, 'prepared')]);
    assert.deepEqual(gate.answered(), []);
    assert.deepEqual(gate.sent(), [eip, pair, other]);
    assert.deepEqual(said, [`prepared ${other}`]);
  });

  it('hands what it does not know to the other node of a move, of the same family, while there is one', async () => {
    const { gate, gateController } = await open();
    const [hop4, hop6] = [ip('192.200.0.2'), ip('fd92::2')];
    gateController.setHops(new Map([['b', [hop4, hop6]]]));
    gateController.setReady(both);
    for (const mode of ['prepared', 'owned', 'carried'] as const) {
      gateController.hold([{ ...held(eip, mode), other: 'b' }, held(other)]);
      assert.deepEqual(
        [...gate.others()],
        [
          [eip, hop4],
          [pair, hop6],
        ],
        mode,
      );
    }
    gateController.hold([{ ...held(eip), other: 'c' }]);
    assert.deepEqual([...gate.others()], [], 'nobody knows where it is');
    gateController.hold([held(eip)]);
    assert.deepEqual([...gate.others()], []);
  });

  it('says that an EIP is prepared when it lies ready, once', async () => {
    const { gateController, said } = await open();
    gateController.hold([held(other, 'prepared')]);
    assert.deepEqual(said, []);
    gateController.setReady(both);
    gateController.hold([held(other, 'prepared')]);
    assert.deepEqual(said, [`prepared ${other}`]);
  });

  it('announces what it owns when it lies ready, not before', async () => {
    const { gateController, said } = await open();
    gateController.hold([held(eip)]);
    assert.deepEqual(said, []);
    gateController.setReady(both);
    assert.deepEqual(said, [`announce ${eip}`, `announce ${pair}`]);
    gateController.announce(eip);
    await Promise.resolve();
    assert.equal(said.filter((line) => line === `announce ${eip}`).length, 2);
  });

  it('keeps what a run before held, if it is renewed', async () => {
    const { clock, gate, gateController } = await open([held(eip)]);
    gateController.setReady(both);
    await clock.advance(leaseMs - 1);
    gateController.renew();
    await clock.advance(leaseMs - 1);
    assert.deepEqual(gate.answered(), [eip, pair]);
    await clock.advance(2);
    assert.deepEqual(gate.answered(), []);
  });

  it('leaves the kernel alone at the start until it knows both addresses of a pair', async () => {
    const { gate, gateController } = await open([held(eip)]);
    gate.hold(
      [eip, pair].map((one) => ({ ip: one, epoch: 4, isAnswered: true })),
      leaseMs,
    );
    gateController.renew();
    assert.deepEqual(gate.answered(), [eip, pair]);
    gateController.setReady(both);
    gateController.renew();
    assert.deepEqual(gate.answered(), [eip, pair]);
  });

  it('says so when the kernel will not, and holds when it will', async () => {
    const { gate, gateController, said } = await open();
    gateController.setReady(both);
    gate.tamper();
    gateController.hold([held(other)]);
    assert.deepEqual(said, ['refused no such file or directory', `announce ${other}`]);
    await gate.prepare();
    gateController.renew();
    assert.deepEqual(gate.answered(), [other]);
  });

  it('opens the gate for what it did not have before only when its connections are there', async () => {
    const brought = Promise.withResolvers<void>();
    const asked: string[] = [];
    const { gate, gateController, said } = await open([held(other)], (ips, isPlanned) => {
      asked.push(`${ips.join()} ${isPlanned}`);
      return brought.promise;
    });
    gateController.setReady(both);
    gateController.renew();
    gateController.hold([held(other), held(eip)]);
    assert.deepEqual([gate.answered(), asked], [[other], [`${eip},${pair} false`]]);
    brought.resolve();
    await brought.promise;
    assert.deepEqual(gate.answered().toSorted(), [eip, other, pair].toSorted());
    assert.deepEqual(said, [`announce ${other}`, `announce ${eip}`, `announce ${pair}`]);
  });

  it('calls an EIP open when the kernel answers for it: not while it is owned only, refused, or waits for connections', async () => {
    const brought = Promise.withResolvers<void>();
    const { gate, gateController, opened } = await open([], () => brought.promise);
    gateController.hold([held(eip)]);
    assert.deepEqual(opened(), [], 'it does not lie ready');
    gateController.setReady(both);
    assert.deepEqual(opened(), [], 'its connections are on their way');
    brought.resolve();
    await brought.promise;
    assert.deepEqual(opened(), [eip, pair]);
    gate.tamper();
    gateController.hold([held(eip), held(other)]);
    await brought.promise;
    assert.deepEqual(opened(), [eip, pair], 'the kernel has not taken it');
    await gate.prepare();
    gateController.renew();
    assert.deepEqual(opened(), [eip, pair, other]);
    gateController.hold([held(eip, 'carried'), held(other)]);
    assert.deepEqual(opened(), [other]);
  });

  it('leaves the gate shut for what was let go while its connections were brought', async () => {
    const brought = Promise.withResolvers<void>();
    const { gate, gateController, said } = await open([], () => brought.promise);
    gateController.setReady(both);
    gateController.hold([held(eip)]);
    gateController.hold([]);
    brought.resolve();
    await brought.promise;
    assert.deepEqual([gate.answered(), gate.sent(), said], [[], [], []]);
  });

  it('says that an EIP is prepared when its connections are there, and then opens at once', async () => {
    const brought = Promise.withResolvers<void>();
    const { gate, gateController, said } = await open([], () => brought.promise);
    gateController.setReady(both);
    gateController.hold([held(eip, 'prepared')]);
    assert.deepEqual([gate.sent(), said], [[], []]);
    brought.resolve();
    await brought.promise;
    assert.deepEqual([gate.sent(), said], [[eip, pair], [`prepared ${eip}`]]);
    gateController.hold([held(eip)]);
    assert.deepEqual(gate.answered(), [eip, pair]);
  });

  it('opens nothing after a stop for longer than the lease, whoever asks, until it is told anew what to hold', async () => {
    const brought = Promise.withResolvers<void>();
    const { clock, gate, gateController, said } = await open([], (ips) =>
      ips.includes(other) ? brought.promise : undefined,
    );
    gateController.setReady(both);
    gateController.hold([held(eip), held(other)]);
    await clock.advance(leaseMs + 1);
    const before = said.length;
    // A table was replaced, a pass has ended, connections have come, a round is due: all in the first turn after the stop.
    gateController.repeat();
    gateController.setReady(both);
    brought.resolve();
    await brought.promise;
    gateController.announce(eip);
    await Promise.resolve();
    assert.deepEqual([gate.answered(), gate.sent(), said.length], [[], [], before]);
    gateController.hold([]);
    assert.equal(gateController.heldUntilMs, Infinity);
    gateController.hold([{ ...held(eip), epoch: 5 }]);
    assert.deepEqual(gate.answered(), [eip, pair]);
  });

  it('does not prolong what it finds in the kernel at the start, nor announce it, before others have confirmed it', async () => {
    const { clock, gate, gateController, said } = await open([held(eip)]);
    await clock.advance(0.6 * leaseMs);
    gateController.setReady(both);
    gateController.repeat();
    assert.deepEqual([gate.answered(), said], [[eip, pair], []]);
    await clock.advance(0.5 * leaseMs);
    assert.deepEqual(gate.answered(), []);
    gateController.renew();
    assert.deepEqual(
      [gate.answered(), said],
      [
        [eip, pair],
        [`announce ${eip}`, `announce ${pair}`],
      ],
    );
  });

  it('announces what it has found and was given anew', async () => {
    const { gateController, said } = await open([held(eip)]);
    gateController.setReady(both);
    gateController.hold([{ ...held(eip), epoch: 5 }]);
    assert.deepEqual(said, [`announce ${eip}`, `announce ${pair}`]);
  });

  it('knows which EIP an address belongs to: a conflict about either address of a pair is one about the EIP', async () => {
    const { gateController } = await open();
    gateController.setReady(both);
    assert.deepEqual(
      [eip, pair, other].map((one) => gateController.eipOf(one)),
      [eip, eip, other],
    );
  });

  it('holds all for one lease: what comes later ends with the rest', async () => {
    const { clock, gate, gateController } = await open();
    gateController.setReady(both);
    gateController.hold([held(eip)]);
    await clock.advance(0.6 * leaseMs);
    gateController.hold([held(eip), held(other)]);
    await clock.advance(0.4 * leaseMs + 1);
    assert.deepEqual(gate.answered(), []);
  });
});
