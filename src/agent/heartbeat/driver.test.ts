import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultTiming, timingOf } from '../../core/ownership/timing.ts';
import { ip } from '../../core/testing/address.ts';
import { type Clock, ManualClock } from '../../runtime/process/clock.ts';
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

  it('sends its heartbeat though packets come at every turn of a slow event loop', () => {
    let nowMs = 0;
    let timer: (() => void) | undefined;
    let set = 0;
    const clock: Clock = {
      now: () => new Date(nowMs),
      monotonicMs: () => nowMs,
      after: (_, callback) => {
        set += 1;
        timer = callback;
        return () => {
          timer = undefined;
        };
      },
    };
    const sent: string[] = [];
    const driver = new Driver({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [],
      clock,
      seal: new Seal({ node: 'a', keys: [new Uint8Array(32)], randomNumber: () => 7 }),
      send: (address) => sent.push(address),
      askKernel: () => {},
      tell: () => {},
    });
    driver.setAddresses(new Map([['b', '10.0.0.2']]));
    const plan = { electorate: { ...electorate, voters: ['a', 'b', 'c'] }, gateways: ['a'], nodes: ['a'], eips: [] };
    driver.take({ kind: 'plan', plan });
    sent.length = 0;
    const before = set;
    for (let turn = 0; turn < 5; turn += 1) {
      nowMs += 30;
      driver.take({ kind: 'echoed', node: 'b', sequence: 0 });
    }
    assert.equal(set, before, 'the timer that is due stays');
    timer?.();
    assert.deepEqual(sent, ['10.0.0.2']);
    assert.equal(set, before + 1);
    driver.close();
    assert.equal(timer, undefined);
  });
});
