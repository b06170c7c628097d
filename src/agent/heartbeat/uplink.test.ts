import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { createNeighbours } from '../../dataplane/announce/neighbours.ts';
import { createFakeSegment, type FakeHost, type FakeSegment } from '../../dataplane/announce/testing/fake-segment.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Uplink } from './uplink.ts';

const nextHops = [ip('10.6.0.1'), ip('fd06::1')];
const place = { interface: 'eth0', nextHops };

describe('Uplink', () => {
  let clock: ManualClock;
  let segment: FakeSegment;
  let router: FakeHost;
  let hasCarrier: boolean;
  let told: string[];
  let uplink: Uplink;
  beforeEach(() => {
    clock = new ManualClock();
    segment = createFakeSegment({ eth0: '66:00:00:00:00:01', eth1: '66:00:00:00:00:02' });
    router = segment.host('66:00:00:00:00:99');
    for (const hop of nextHops) router.addresses.add(hop);
    hasCarrier = true;
    told = [];
    uplink = new Uplink({
      clock,
      hasCarrier: () => hasCarrier,
      neighbours: createNeighbours(segment.open),
      onChange: (isUp, why) => told.push(isUp ? 'up' : why),
    });
  });
  const silence = 'the next hop 10.6.0.1 and fd06::1 is silent';

  it('says nothing of a router that answers, over one socket of each family', async () => {
    uplink.watch(place);
    await clock.advance(10_000);
    assert.deepEqual([told, segment.openSockets], [[], 2]);
    uplink.watch(undefined);
    const sent = segment.sent.length;
    await clock.advance(1_000);
    assert.deepEqual([segment.openSockets, segment.sent.length], [0, sent], 'nobody looks');
  });

  it('takes a router for lost 150 to 200 ms after it has fallen silent, and for back when it answers', async () => {
    uplink.watch(place);
    await clock.advance(1_000);
    router.addresses.clear();
    await clock.advance(150);
    assert.deepEqual(told, []);
    await clock.advance(50);
    assert.deepEqual(told, [silence]);
    router.addresses.add(nextHops[0] ?? assert.fail());
    await clock.advance(100);
    assert.deepEqual(told, [silence, 'up'], 'one family is enough');
  });

  it('forgives two questions without an answer', async () => {
    uplink.watch(place);
    await clock.advance(1_000);
    for (let times = 0; times < 5; times += 1) {
      router.addresses.clear();
      await clock.advance(100);
      for (const hop of nextHops) router.addresses.add(hop);
      await clock.advance(100);
    }
    assert.deepEqual(told, []);
  });

  it('draws no conclusion from a router that never answered', async () => {
    router.addresses.clear();
    uplink.watch(place);
    await clock.advance(10_000);
    assert.deepEqual(told, []);
  });

  it('sees that the carrier is gone within 50 ms, and asks nobody then', async () => {
    uplink.watch(place);
    await clock.advance(1_000);
    hasCarrier = false;
    await clock.advance(50);
    assert.deepEqual(told, ['the interface has no carrier']);
    const sent = segment.sent.length;
    await clock.advance(1_000);
    assert.equal(segment.sent.length, sent);
    hasCarrier = true;
    await clock.advance(50);
    assert.deepEqual(told, ['the interface has no carrier', 'up']);
  });

  it('asks on another interface when the place is another, and on one that was made anew', async () => {
    uplink.watch(place);
    await clock.advance(1_000);
    uplink.watch({ ...place, interface: 'eth1' });
    await clock.advance(1_000);
    assert.deepEqual([segment.sent.at(-1)?.interfaceName, segment.openSockets], ['eth1', 2]);
    segment.interfaces.delete('eth1');
    await clock.advance(1_000);
    assert.deepEqual(told, [], 'a question that cannot be sent proves nothing; the carrier does');
    segment.interfaces.set('eth1', '66:00:00:00:00:03');
    await clock.advance(1_000);
    assert.deepEqual([told, segment.openSockets], [[], 2]);
  });
});
