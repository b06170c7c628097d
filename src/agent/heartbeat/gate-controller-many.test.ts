/** A node with thousands of EIPs: nothing that the thread of heartbeats does for them takes long at once. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import type { EipHold } from '../../core/ownership/port.ts';
import { ip } from '../../core/testing/address.ts';
import { createFakeGate } from '../../dataplane/gate/testing/fake-gate.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { GateController } from './gate-controller.ts';

const leaseMs = 1_000;
const claim = (one: Ip): Claim => ({ ip: one, interfaces: ['eth0'] });
const held = (one: Ip): EipHold => ({ eip: one, epoch: 4, mode: 'owned' });
const eips = Array.from({ length: 1_000 }, (_, place) => ip(`10.7.${place >> 8}.${place & 255}`));

/** A node for which these lie ready and are held. */
const open = async (some: readonly Ip[] = eips) => {
  const clock = new ManualClock();
  const gate = createFakeGate(clock);
  await gate.prepare();
  const again: (readonly Ip[])[] = [];
  const announcer = {
    apply: () => ({ refused: [] }),
    repeat: (claims: readonly Claim[]) => void again.push(claims.map((one) => one.ip)),
  };
  const nothing = (): undefined => undefined;
  const hooks = { onLease: nothing, onOpened: nothing, onPrepared: nothing, onRefused: nothing };
  const deps = { gateSets: gate, announcer, clock, leaseMs, handBackMs: 100, bring: nothing, ...hooks };
  const gateController = new GateController(deps, { held: [], untilMs: Infinity });
  gateController.setReady(new Map(some.map((one) => [one, [claim(one)]])));
  gateController.hold(some.map(held));
  return { clock, gate, gateController, again };
};

describe('Gate controller of many EIPs', () => {
  it('prolongs what a node with thousands of EIPs holds in small parts, all of it for the same time', async () => {
    const { clock, gate, gateController } = await open();
    await clock.advance(0.5 * leaseMs);
    const sizes: number[] = [];
    const { hold, prolong } = gate;
    gate.hold = (holds, forMs) => {
      sizes.push(holds.length);
      return hold(holds, forMs);
    };
    gate.prolong = (some, forMs) => {
      sizes.push(some.length);
      return prolong(some, forMs);
    };
    gateController.renew();
    await clock.advance(20);
    // Some go meanwhile, and one comes back in a later epoch.
    gateController.hold(eips.slice(0, 990).map((one, place) => ({ ...held(one), epoch: place === 900 ? 5 : 4 })));
    await clock.advance(200);
    assert.ok(Math.max(...sizes.filter((size) => size !== 990)) <= 100, `${sizes.join()}`);
    await clock.advance(0.5 * leaseMs);
    assert.equal(gate.sent().length, 990, 'the lease is that of the renewal');
    await clock.advance(0.5 * leaseMs - 219);
    assert.deepEqual(gate.sent(), [], 'and ends for all together');
  });

  it('prolongs the more rarely the more it holds, but in time', async () => {
    const { clock, gate, gateController } = await open();
    let parts = 0;
    const { prolong } = gate;
    gate.prolong = (some, forMs) => {
      parts += 1;
      return prolong(some, forMs);
    };
    for (let round = 0; round < 100; round += 1) {
      gateController.renew();
      await clock.advance(leaseMs / 20);
      assert.equal(gate.sent().length, 1_000);
    }
    assert.ok(parts <= 10 * 25, `${parts} parts in five leases`);
  });

  it('tells the kernel everything when it has lost what is to be prolonged', async () => {
    const { gate, gateController } = await open(eips.slice(0, 2));
    gate.tamper();
    await gate.prepare();
    gateController.renew();
    assert.deepEqual(gate.answered(), eips.slice(0, 2));
  });

  it('announces hundreds of EIPs again in one step, not each of them beside all others', async () => {
    const { gateController, again } = await open();
    for (const one of eips.slice(0, 500)) gateController.announce(one);
    await Promise.resolve();
    assert.deepEqual(again, [eips.slice(0, 500)]);
  });
});
