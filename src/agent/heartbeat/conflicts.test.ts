import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import { createConflictListener } from '../../dataplane/announce/conflict-listener.ts';
import { announcements, question } from '../../dataplane/announce/frames.ts';
import { createFakeSegment, type FakeHost, type FakeSegment } from '../../dataplane/announce/testing/fake-segment.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { ConflictWatch } from './conflicts.ts';

const [OWN, OTHER_OWN, NODE, STRANGER] = [1, 2, 3, 4].map((last) => `66:00:00:00:00:0${last}`) as [
  string,
  string,
  string,
  string,
];
const eip = ip('10.6.0.100');
const pair = ip('fd06::100');
const claimOf = (one: Ip) => ({ ip: one, interfaces: ['eth0'] });

describe('ConflictWatch', () => {
  let clock: ManualClock;
  let segment: FakeSegment;
  let stranger: FakeHost;
  /** Each list of conflicts that was told, as text. */
  let told: string[];
  let toldNodes: Ip[];
  let watch: ConflictWatch;
  beforeEach(() => {
    clock = new ManualClock();
    segment = createFakeSegment({ eth0: OWN });
    stranger = segment.host(STRANGER);
    told = [];
    toldNodes = [];
    watch = new ConflictWatch({
      clock,
      listener: createConflictListener(segment.open),
      isOwn: (mac) => mac === OTHER_OWN,
      onChange: (conflicts) => told.push(conflicts.map((one) => `${one.ip} ${one.mac} ${one.interface}`).join()),
      onOurNodes: (some) => toldNodes.push(...some),
    });
  });
  const sent = (frames: readonly Buffer[]): number =>
    segment.sent.filter(({ frame }) => frames.some((one) => one.equals(frame))).length;
  const defences = (one: Ip): number => sent(announcements(one, OWN)) / announcements(one, OWN).length;

  for (const one of [eip, pair]) {
    it(`tells of a machine that takes an EIP in use within two looks, with its MAC address (${one})`, async () => {
      watch.watch([claimOf(one)]);
      await clock.advance(60_000);
      assert.deepEqual(told, []);
      stranger.announce(one);
      await clock.advance(200);
      assert.deepEqual(told, [`${one} ${STRANGER} eth0`]);
    });

    it(`finds a machine that answers without speaking, in its round (${one})`, async () => {
      watch.watch([claimOf(one)]);
      await clock.advance(2_000);
      stranger.addresses.add(one);
      await clock.advance(30_000);
      assert.deepEqual(told, [`${one} ${STRANGER} eth0`]);
    });

    it(`says so for as long as the machine answers, and ten seconds more (${one})`, async () => {
      watch.watch([claimOf(one)]);
      await clock.advance(1_000);
      stranger.addresses.add(one);
      stranger.announce(one);
      await clock.advance(120_000);
      assert.deepEqual(told, [`${one} ${STRANGER} eth0`], 'told once');
      stranger.addresses.clear();
      await clock.advance(7_800);
      assert.equal(told.length, 1);
      await clock.advance(2_500);
      assert.deepEqual(told.slice(1), ['']);
    });
  }

  it('keeps the EIP and defends it, once in ten seconds, however often it is claimed (RFC 5227)', async () => {
    watch.watch([claimOf(eip)]);
    await clock.advance(1_000);
    for (let times = 0; times < 50; times += 1) {
      stranger.announce(eip);
      await clock.advance(100);
    }
    assert.equal(defences(eip), 1);
    for (let times = 0; times < 300; times += 1) {
      stranger.announce(eip);
      await clock.advance(100);
    }
    assert.equal(defences(eip), 4);
  });

  it('does not take a node of ours for a foreign machine, which may have had the EIP before: the protocol tells it', async () => {
    watch.setOurMacs(new Set([NODE, OWN]));
    watch.watch([claimOf(eip)]);
    const node = segment.host(NODE);
    for (let times = 0; times < 20; times += 1) {
      node.announce(eip);
      await clock.advance(100);
    }
    assert.deepEqual(told, []);
    assert.equal(defences(eip), 0);
    assert.deepEqual(toldNodes, [eip, eip], 'once a second');
  });

  it('says no more of a machine that turns out to be a node of ours', async () => {
    watch.watch([claimOf(eip)]);
    await clock.advance(100);
    segment.host(NODE).announce(eip);
    await clock.advance(200);
    watch.setOurMacs(new Set([NODE]));
    assert.deepEqual(told, [`${eip} ${NODE} eth0`, '']);
  });

  it('passes over frames of this machine, and over who only asks for the EIP', async () => {
    watch.watch([claimOf(eip), claimOf(pair)]);
    await clock.advance(1_000);
    for (const mac of [OWN, OTHER_OWN]) for (const one of [eip, pair]) segment.host(mac).announce(one);
    await clock.advance(60_000);
    assert.deepEqual(told, []);
  });

  it('forgets a conflict about an EIP that went elsewhere, and listens to nothing without EIPs', async () => {
    watch.watch([claimOf(eip)]);
    await clock.advance(100);
    stranger.announce(eip);
    await clock.advance(100);
    watch.watch([]);
    await clock.advance(100);
    assert.deepEqual(told, [`${eip} ${STRANGER} eth0`, '']);
    assert.equal(segment.openSockets, 0);
    const questions = segment.sent.length;
    await clock.advance(60_000);
    assert.equal(segment.sent.length, questions, 'nobody asks');
  });

  it('is not woken by the talk of others: their claims do not get into its sockets', async () => {
    watch.watch([claimOf(eip), claimOf(pair)]);
    await clock.advance(200);
    for (let last = 1; last < 100; last += 1) stranger.announce(ip(`10.6.0.${last}`));
    await clock.advance(200);
    assert.equal(segment.received, 0);
  });

  it('asks 20 times a second at the most, whatever the number of EIPs, and each of them in its turn', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => claimOf(ip(`10.6.${index >> 8}.${index & 255}`)));
    watch.watch(many);
    await clock.advance(1_200);
    const before = segment.sent.length;
    await clock.advance(10_000);
    assert.ok(segment.sent.length - before <= 200, `${segment.sent.length - before} questions`);
    await clock.advance(110_000);
    for (const one of many) assert.ok(sent([question(one.ip, OWN)]) >= 1, one.ip);
  });

  it('names another machine when the one that was named is gone', async () => {
    watch.watch([claimOf(eip)]);
    await clock.advance(100);
    stranger.announce(eip);
    await clock.advance(100);
    const second = segment.host('66:00:00:00:00:05');
    for (let times = 0; times < 200; times += 1) {
      second.announce(eip);
      await clock.advance(100);
    }
    assert.deepEqual(told, [`${eip} ${STRANGER} eth0`, `${eip} ${second.mac} eth0`]);
  });

  it('goes on when the interface comes back as another one', async () => {
    watch.watch([claimOf(eip)]);
    await clock.advance(1_000);
    segment.interfaces.delete('eth0');
    await clock.advance(60_000);
    segment.interfaces.set('eth0', OWN);
    stranger.addresses.add(eip);
    await clock.advance(31_000);
    assert.deepEqual(told, [`${eip} ${STRANGER} eth0`]);
  });
});
