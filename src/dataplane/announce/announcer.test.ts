import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import { type AddressHolder, createAnnouncer } from './announcer.ts';
import { announcements, probe } from './frames.ts';
import { conflictConformance } from './testing/conflict-conformance.ts';
import { announcerConformance } from './testing/conformance.ts';
import { createFakeSegment } from './testing/fake-segment.ts';
import { openFakeWorld } from './testing/fake-world.ts';
import { manualTimers } from './testing/timers.ts';

const MAC = '66:00:00:00:00:01';
const MAC_1 = '66:00:00:00:00:11';
const PEER_MAC = '66:00:00:00:00:02';
const EIP = ip('10.6.0.100');
const OTHER = ip('fd06::100');

announcerConformance('fake segment', openFakeWorld);
conflictConformance('fake segment', openFakeWorld);

/** An announcer on a segment, on a clock that the test moves. */
const setUp = (interfaces: Record<string, string> = { eth0: MAC }, own: readonly string[] = []) => {
  const segment = createFakeSegment(interfaces);
  const clock = manualTimers();
  const conflicts: { readonly ip: Ip; readonly owner: AddressHolder }[] = [];
  const announcer = createAnnouncer({
    open: segment.open,
    clock,
    onConflict: (ip, owner) => conflicts.push({ ip, owner }),
    isOwn: (mac) => own.includes(mac),
  });
  /** What was sent since the last call, as text. */
  let seen = 0;
  const sentNow = (): string[] => {
    const fresh = segment.sent.slice(seen);
    seen = segment.sent.length;
    return fresh.map(({ interfaceName, frame }) => `${interfaceName} ${frame.toString('hex')}`);
  };
  return { segment, clock, conflicts, announcer, sentNow };
};
const on = (interfaceName: string, frames: readonly Buffer[]): string[] =>
  frames.map((frame) => `${interfaceName} ${frame.toString('hex')}`);
const claimOf = (ip: Ip, ...interfaces: readonly string[]) => ({ ip, interfaces });

test('a claim is announced on every interface at once, after 1 s and after 3 s, and then nothing is left', () => {
  const { announcer, clock, segment, sentNow } = setUp({ eth0: MAC, eth1: MAC_1 });
  const expected = [...on('eth0', announcements(EIP, MAC)), ...on('eth1', announcements(EIP, MAC_1))];
  announcer.apply([claimOf(EIP, 'eth0', 'eth1')]);
  assert.deepEqual(sentNow(), expected);
  clock.advance(999);
  assert.deepEqual(sentNow(), []);
  clock.advance(1);
  assert.deepEqual(sentNow(), expected);
  clock.advance(1999);
  assert.deepEqual(sentNow(), []);
  clock.advance(1);
  assert.deepEqual(sentNow(), expected);
  clock.advance(1000);
  assert.deepEqual(sentNow(), []);
  assert.equal(clock.waiting, 0);
  assert.equal(segment.openSockets, 0);
});

test('a process that stood still does not announce before there was time to hear whose the EIP is now', () => {
  const { announcer, clock, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0'), claimOf(OTHER, 'eth0')]);
  sentNow();
  clock.oversleep(5_000);
  clock.advance(999);
  assert.deepEqual(sentNow(), []);
  announcer.apply([claimOf(OTHER, 'eth0')]);
  clock.advance(1);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)));
  clock.advance(2_000);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)));
  clock.advance(1_000);
  assert.equal(clock.waiting, 0);
});

test('applying the same claims again announces nothing, a new one among them only that', () => {
  const { announcer, clock, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0')]);
  clock.advance(10_000);
  sentNow();
  announcer.apply([claimOf(EIP, 'eth0')]);
  assert.deepEqual(sentNow(), []);
  announcer.apply([claimOf(OTHER, 'eth0'), claimOf(EIP, 'eth0')]);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)));
});

test('a thousand EIPs that come together are announced in parts, so that a heartbeat can leave between two of them', () => {
  const { announcer, clock, sentNow } = setUp();
  const many = Array.from({ length: 1_000 }, (_, place) => ip(`10.7.${place >> 8}.${place & 255}`));
  const framesPerEip = announcements(EIP, MAC).length;
  announcer.apply(many.map((one) => claimOf(one, 'eth0')));
  assert.equal(sentNow().length, 100 * framesPerEip, 'the first ones at once');
  clock.advance(1);
  assert.equal(sentNow().length, 100 * framesPerEip);
  clock.advance(20);
  assert.equal(sentNow().length, 800 * framesPerEip);
  clock.advance(1_000);
  assert.equal(sentNow().length, 1_000 * framesPerEip, 'and all of them again after a second');
});

test('to announce some again touches no others, and begins their rounds anew', () => {
  const { announcer, clock, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0'), claimOf(OTHER, 'eth0')]);
  clock.advance(10_000);
  sentNow();
  announcer.repeat([claimOf(OTHER, 'eth0'), claimOf(ip('10.6.0.101'), 'eth0')]);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)), 'what is not announced stays so');
  clock.advance(1_000);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)));
});

test('a claim that is given up is not announced again, and claimed again it is new', () => {
  const { announcer, clock, segment, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0'), claimOf(OTHER, 'eth0')]);
  announcer.apply([claimOf(OTHER, 'eth0')]);
  sentNow();
  clock.advance(1000);
  assert.deepEqual(sentNow(), on('eth0', announcements(OTHER, MAC)));
  announcer.apply([]);
  clock.advance(10_000);
  assert.deepEqual(sentNow(), []);
  assert.equal(segment.openSockets, 0);
  announcer.apply([claimOf(EIP, 'eth0')]);
  assert.deepEqual(sentNow(), on('eth0', announcements(EIP, MAC)));
});

test('a claim on an interface that comes back is announced again', () => {
  const { announcer, clock, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0')]);
  clock.advance(10_000);
  announcer.apply([claimOf(EIP)]);
  sentNow();
  announcer.apply([claimOf(EIP, 'eth0')]);
  assert.deepEqual(sentNow(), on('eth0', announcements(EIP, MAC)));
});

test('what failed is tried again by its rounds and, when they are over, by the next apply', () => {
  const { announcer, clock, segment, sentNow } = setUp({});
  const claims = [claimOf(EIP, 'eth0')];
  assert.equal(announcer.apply(claims).refused[0]?.finding.reason, 'AnnounceFailed');
  clock.advance(10_000);
  assert.equal(announcer.apply(claims).refused.length, 1);
  segment.interfaces.set('eth0', MAC);
  clock.advance(1000);
  assert.deepEqual(sentNow(), on('eth0', announcements(EIP, MAC)));
  assert.deepEqual(announcer.apply(claims), { refused: [] });
});

test('an interface that goes away between rounds is a failure and comes back as a new one', () => {
  const { announcer, clock, segment, sentNow } = setUp();
  const claims = [claimOf(EIP, 'eth0')];
  announcer.apply(claims);
  segment.interfaces.delete('eth0');
  clock.advance(1000);
  assert.equal(announcer.apply(claims).refused.length, 1);
  segment.interfaces.set('eth0', MAC_1);
  sentNow();
  clock.advance(2000);
  assert.deepEqual(sentNow(), on('eth0', announcements(EIP, MAC_1)));
});

test('a claim without any interface is refused, and the sentence says what to do', () => {
  const { announcer } = setUp();
  assert.deepEqual(announcer.apply([claimOf(EIP)]).refused, [
    {
      ip: EIP,
      finding: {
        reason: 'AnnounceFailed',
        sentence:
          'EIP 10.6.0.100 is announced on no interface (there is none). Bring an interface up that announcedInterfacesToExclude does not match.',
      },
    },
  ]);
});

test('a process that may not open packet sockets says that it lacks the capability', () => {
  const announcer = createAnnouncer({
    open: () => ({ why: 'operation not permitted', kind: 'forbidden' }),
    clock: manualTimers(),
    onConflict: () => {},
  });
  assert.equal(announcer.apply([claimOf(EIP, 'eth0')]).refused[0]?.finding.reason, 'CapabilityMissing');
});

test('a probe asks twice within its wait, then ends without an answer and leaves nothing behind', async () => {
  const { announcer, clock, segment, sentNow } = setUp();
  const answer = announcer.probe(claimOf(EIP, 'eth0'), 24);
  const question = on('eth0', [probe(EIP, MAC)]);
  assert.deepEqual(sentNow(), question);
  clock.advance(11);
  assert.deepEqual(sentNow(), []);
  clock.advance(1);
  assert.deepEqual(sentNow(), question);
  clock.advance(12);
  assert.equal(await answer, undefined);
  assert.equal(clock.waiting, 0);
  assert.equal(segment.openSockets, 0);
});

test('an answer that lies in the socket when the time is over still counts', async () => {
  const { announcer, clock, segment } = setUp();
  const host = segment.host(PEER_MAC);
  const answer = announcer.probe(claimOf(EIP, 'eth0'), 1);
  host.announce(EIP);
  clock.advance(1);
  assert.deepEqual(await answer, { mac: PEER_MAC, interface: 'eth0' });
});

test('probes of several addresses at once get each its own answer', async () => {
  const { announcer, clock, segment } = setUp();
  segment.host(PEER_MAC).addresses.add(OTHER);
  const answers = Promise.all([announcer.probe(claimOf(EIP, 'eth0'), 24), announcer.probe(claimOf(OTHER, 'eth0'), 24)]);
  clock.advance(24);
  assert.deepEqual(await answers, [undefined, { mac: PEER_MAC, interface: 'eth0' }]);
});

test('frames of this node on another of its interfaces are neither answer nor conflict', async () => {
  const { announcer, clock, segment, conflicts } = setUp({ eth0: MAC, eth1: MAC_1 });
  const reflection = segment.host(MAC_1);
  announcer.apply([claimOf(EIP, 'eth0', 'eth1')]);
  reflection.announce(EIP);
  const answer = announcer.probe(claimOf(EIP, 'eth0', 'eth1'), 24);
  clock.advance(24);
  assert.equal(await answer, undefined);
  assert.deepEqual(conflicts, []);
});

test('an answer of this machine by an interface that is not in use is neither, and hides no other', async () => {
  const { announcer, clock, segment, conflicts } = setUp({ eth0: MAC }, [MAC_1]);
  for (const mac of [MAC_1, PEER_MAC]) segment.host(mac).addresses.add(EIP);
  announcer.apply([claimOf(EIP, 'eth0')]);
  const answer = announcer.probe(claimOf(EIP, 'eth0'), 24);
  clock.advance(24);
  const owner = { mac: PEER_MAC, interface: 'eth0' };
  assert.deepEqual(await answer, owner);
  assert.deepEqual(conflicts, [{ ip: EIP, owner }]);
});

test('a claim by another machine is a conflict until the last round has had its time', () => {
  const { announcer, clock, segment, conflicts } = setUp();
  const host = segment.host(PEER_MAC);
  announcer.apply([claimOf(EIP, 'eth0')]);
  clock.advance(3500);
  host.announce(EIP);
  clock.advance(500);
  assert.deepEqual(conflicts, [{ ip: EIP, owner: { mac: PEER_MAC, interface: 'eth0' } }]);
});

test('two nodes that announce anew whenever they hear each other do not shout each other down, and go on once a second', () => {
  const clock = manualTimers();
  const segments = [MAC, PEER_MAC].map((mac) => createFakeSegment({ eth0: mac }));
  const conflicts = [0, 0];
  const announcers = segments.map((segment, index) => {
    const claim = claimOf(EIP, 'eth0');
    const announcer = createAnnouncer({
      open: segment.open,
      clock,
      onConflict: () => {
        conflicts[index] = (conflicts[index] ?? 0) + 1;
        announcer.apply([]);
        announcer.apply([claim]);
      },
    });
    announcer.apply([claim]);
    return announcer;
  });
  // Each hears as a machine on its segment what the other one has sent, or the first of it: else it would never end without the limit.
  const passed = [0, 0];
  const hosts = [PEER_MAC, MAC].map((mac, index) => segments[index]?.host(mac));
  for (let ms = 0; ms < 5_000; ms += 10) {
    for (const [index, segment] of segments.entries()) {
      if (segment.sent.length > (passed[index] ?? 0)) hosts[1 - index]?.announce(EIP);
      passed[index] = segment.sent.length;
    }
    clock.advance(10);
  }
  for (const announcer of announcers) announcer.close();
  for (const count of conflicts)
    assert.ok(count >= 3 && count <= 5, `${conflicts.join(' and ')} conflicts in five seconds`);
});

test('closing ends everything: rounds, probes and sockets', async () => {
  const { announcer, clock, segment, sentNow } = setUp();
  announcer.apply([claimOf(EIP, 'eth0')]);
  const answer = announcer.probe(claimOf(OTHER, 'eth0'), 24);
  sentNow();
  announcer.close();
  announcer.close();
  assert.equal(await answer, undefined);
  clock.advance(10_000);
  assert.deepEqual(sentNow(), []);
  assert.equal(clock.waiting, 0);
  assert.equal(segment.openSockets, 0);
});
