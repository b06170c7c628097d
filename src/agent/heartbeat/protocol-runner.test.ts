import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultTiming, timingOf } from '../../core/ownership/timing.ts';
import { ip } from '../../core/testing/address.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import type { MachineClock } from '../thread/machine-clock.ts';
import { type ProtocolOutput, ProtocolRunner } from './protocol-runner.ts';
import { HeartbeatSeal } from './seal.ts';

const eip = ip('10.6.1.1');
const electorate = { generation: 1, voters: ['a'], hasApi: false };

const createSeal = () => new HeartbeatSeal({ node: 'a', keys: [new Uint8Array(32)], randomNumber: () => 7 });
/** A clock that a test moves; the machine is suspended when the test says so. */
const manualClock = () => Object.assign(new ManualClock(), { suspendedMs: () => 0 });

describe('Driver', () => {
  it('holds on to what the kernel holds while it waits for the first plan', async () => {
    const clock = manualClock();
    const told: ProtocolOutput[] = [];
    const driver = new ProtocolRunner({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [{ eip, epoch: 4 }],
      promisedUntilMs: -Infinity,
      clock,
      createSeal,
      heldUntilMs: () => Infinity,
      send: () => {},
      askKernel: () => {},
      tell: (one) => told.push(one),
    });
    driver.take({ kind: 'uplink', unreached: [] });
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
    const clock: MachineClock = {
      suspendedMs: () => 0,
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
    const driver = new ProtocolRunner({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [],
      promisedUntilMs: -Infinity,
      clock,
      createSeal,
      heldUntilMs: () => Infinity,
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

  /** A node that owns an EIP by the word of nobody but itself and two others, and a process that can stand still. */
  const standing = () => {
    const manual = new ManualClock();
    let stoodStillMs = 0;
    let suspendedMs = 0;
    const told: ProtocolOutput[] = [];
    let seals = 0;
    let { leaseMs: heldUntilMs } = timingOf(defaultTiming);
    const sent: string[] = [];
    const driver = new ProtocolRunner({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [{ eip, epoch: 4 }],
      promisedUntilMs: -Infinity,
      heldUntilMs: () => heldUntilMs,
      clock: {
        now: () => manual.now(),
        monotonicMs: () => manual.monotonicMs() + stoodStillMs,
        suspendedMs: () => suspendedMs,
        after: (delayMs, callback) => manual.after(delayMs, callback),
      },
      createSeal: () => {
        seals += 1;
        return createSeal();
      },
      send: (address) => sent.push(address),
      askKernel: () => {},
      tell: (one) => {
        told.push(one);
        if (one.kind === 'hold') heldUntilMs = Infinity;
      },
    });
    driver.setAddresses(new Map([['b', '10.0.0.2']]));
    const eips = [{ eip, epoch: 4, candidates: ['a'] }];
    const plan = { electorate: { ...electorate, voters: ['a', 'b', 'c'] }, gateways: ['a'], nodes: ['a'], eips };
    driver.take({ kind: 'plan', plan });
    return {
      driver,
      told,
      sent,
      seals: () => seals,
      advance: (ms: number) => manual.advance(ms),
      standStill: (ms: number, isSuspended = false) => {
        told.length = 0;
        stoodStillMs += ms;
        if (isSuspended) suspendedMs += ms;
      },
    };
  };
  const kindsOf = (told: readonly ProtocolOutput[]) =>
    told.map((one) => (one.kind === 'hold' ? `hold ${one.held.length}` : one.kind));

  it('lets go before anything else when it was stopped for longer than the kernel holds, and asks anew', async () => {
    const { driver, told, sent, seals, advance, standStill } = standing();
    standStill(35_000);
    sent.length = 0;
    await advance(25);
    assert.deepEqual(kindsOf(told).slice(0, 3), ['hold 0', 'tie', 'event']);
    assert.deepEqual([told.some(({ kind }) => kind === 'renew'), seals()], [false, 2]);
    assert.ok(sent.length > 0, 'it goes by the plan that it had');
    driver.close();
  });

  it('reads no packet that waited while it was stopped: it looks at the time first', () => {
    const { driver, told, seals, standStill } = standing();
    standStill(35_000);
    driver.packet(new Uint8Array(40), '10.0.0.2');
    assert.deepEqual([kindsOf(told)[0], seals(), driver.refusals.malformed], ['hold 0', 2, 1]);
    driver.close();
  });

  it('lets go when the machine was suspended, though its kernel still holds: it has answered nobody meanwhile', async () => {
    const { driver, told, advance, standStill } = standing();
    standStill(10_000, true);
    await advance(25);
    assert.equal(kindsOf(told)[0], 'hold 0');
    driver.close();
  });

  it('keeps what the kernel holds when it was stopped for 5 s, and does not tell it to hold on before others have answered', async () => {
    const { driver, told, advance, standStill } = standing();
    standStill(5_000);
    await advance(25);
    assert.deepEqual(
      kindsOf(told).filter((kind) => kind === 'renew' || kind.startsWith('hold')),
      [],
    );
    driver.close();
  });
});
