import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultTiming, timingOf } from '../../core/ownership/timing.ts';
import { ip } from '../../core/testing/address.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Driver, type Told } from './driver.ts';
import { Seal } from './seal.ts';

const eip = ip('10.6.1.1');
const electorate = { generation: 1, voters: ['a'], hasApi: false };

describe('Driver', () => {
  it('holds on to what the kernel holds while it waits for the first plan', async () => {
    const clock = new ManualClock();
    const told: Told[] = [];
    const driver = new Driver({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [{ eip, epoch: 4 }],
      clock,
      seal: new Seal({ node: 'a', keys: [new Uint8Array(32)], randomNumber: () => 7 }),
      send: () => {},
      askKernel: () => {},
      tell: (one) => told.push(one),
    });
    driver.take({ kind: 'uplink', isUp: true });
    await clock.advance(5_000);
    assert.deepEqual(told, []);
    const eips = [{ eip, epoch: 4, candidates: ['a'] }];
    driver.take({ kind: 'plan', plan: { electorate, gateways: ['a'], nodes: ['a'], eips } });
    await clock.advance(5_000);
    assert.ok(told.some(({ kind }) => kind === 'renew'));
    assert.deepEqual(
      told.filter(({ kind }) => kind === 'event'),
      [],
    );
    driver.close();
  });
});
