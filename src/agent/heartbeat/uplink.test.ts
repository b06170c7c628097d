import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { UplinkLoss, UplinkPlace } from '../../core/node/uplink.ts';
import type { Unreached } from '../../core/ownership/reach.ts';
import { cidr, ip } from '../../core/testing/address.ts';
import { createNeighbours } from '../../dataplane/announce/neighbours.ts';
import { createFakeSegment, type FakeHost, type FakeSegment } from '../../dataplane/announce/testing/fake-segment.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Uplink } from './uplink.ts';

const [hop4, hop6] = [ip('10.6.0.1'), ip('fd06::1')];
const [ipv4, ipv6, near4, far4] = [cidr('0.0.0.0/0'), cidr('::/0'), cidr('10.6.0.0/16'), cidr('10.7.0.0/16')];
/** Both families leave by eth0, where EIPs are announced. */
const place: UplinkPlace = {
  lines: [
    {
      interface: 'eth0',
      families: [
        { family: 4, nextHop: hop4 },
        { family: 6, nextHop: hop6 },
      ],
    },
  ],
  ways: [
    { network: ipv4, announcedOn: [], leavesBy: 'eth0', isGone: false },
    { network: ipv6, announcedOn: [], leavesBy: 'eth0', isGone: false },
    { network: near4, announcedOn: ['eth0'], leavesBy: 'eth0', isGone: false },
  ],
};
/** EIPs of another network are announced on eth1, where no router is known. */
const withSecond: UplinkPlace = {
  lines: [...place.lines, { interface: 'eth1', families: [{ family: 4, nextHop: undefined }] }],
  ways: [...place.ways, { network: far4, announcedOn: ['eth1'], leavesBy: 'eth0', isGone: false }],
};

describe('Uplink', () => {
  let clock: ManualClock;
  let segment: FakeSegment;
  let router: FakeHost;
  let down: Set<string>;
  let unreached: readonly Unreached[];
  let losses: readonly UplinkLoss[];
  let told: number;
  let uplink: Uplink;
  beforeEach(() => {
    clock = new ManualClock();
    segment = createFakeSegment({ eth0: '66:00:00:00:00:01', eth1: '66:00:00:00:00:02' });
    router = segment.host('66:00:00:00:00:99');
    for (const hop of [hop4, hop6]) router.addresses.add(hop);
    down = new Set();
    [unreached, losses, told] = [[], [], 0];
    uplink = new Uplink({
      clock,
      hasCarrier: (name) => !down.has(name),
      createNeighbours: () => createNeighbours(segment.open),
      onChange: (networks, lost) => {
        unreached = networks;
        losses = lost;
        told += 1;
      },
    });
  });
  const lost = (): string[] => unreached.map(({ network, isLost }) => (isLost ? network : `${network}?`));
  const why = (): string[] => losses.map((one) => `${one.interface} ${one.family} ${one.nextHop ?? one.cause}`);
  const watch = async (where: UplinkPlace): Promise<void> => {
    uplink.watch(where);
    await clock.advance(1_000);
    told = 0;
  };

  it('says at first that it does not know, and nothing of a router that answers, over one socket of each family', async () => {
    uplink.watch(place);
    assert.deepEqual([lost(), why()], [['0.0.0.0/0?', '::/0?'], []]);
    await clock.advance(50);
    assert.deepEqual(lost(), []);
    await watch(place);
    await clock.advance(10_000);
    assert.deepEqual([told, segment.openSockets], [0, 2]);
    uplink.watch(undefined);
    const sent = segment.sent.length;
    await clock.advance(1_000);
    assert.deepEqual([segment.openSockets, segment.sent.length], [0, sent], 'nobody looks');
  });

  for (const [family, hop, network] of [
    [4, hop4, ipv4],
    [6, hop6, ipv6],
  ] as const) {
    it(`notices that the router is silent in IPv${family} only, 150 to 200 ms after it fell silent`, async () => {
      await watch(place);
      router.addresses.delete(hop);
      await clock.advance(150);
      assert.equal(told, 0);
      await clock.advance(50);
      assert.deepEqual(
        [lost(), why()],
        [[network], [`eth0 ${family} ${hop}`]],
        'not its network as well: it is in there',
      );
    });
  }

  it('counts a family as back when its router has answered for a second, and not when it comes and goes', async () => {
    await watch(place);
    router.addresses.delete(hop4);
    await clock.advance(1_000);
    assert.deepEqual(lost(), [ipv4]);
    for (let times = 0; times < 5; times += 1) {
      router.addresses.add(hop4);
      await clock.advance(900);
      router.addresses.delete(hop4);
      await clock.advance(300);
      assert.deepEqual([lost(), told], [[ipv4], 1]);
    }
    router.addresses.add(hop4);
    await clock.advance(1_000);
    assert.deepEqual(lost(), [ipv4]);
    await clock.advance(100);
    assert.deepEqual([lost(), why(), told], [[], [], 2]);
  });

  it('forgives two questions without an answer', async () => {
    await watch(place);
    for (let times = 0; times < 5; times += 1) {
      router.addresses.clear();
      await clock.advance(100);
      for (const hop of [hop4, hop6]) router.addresses.add(hop);
      await clock.advance(100);
    }
    assert.equal(told, 0);
  });

  it('takes nothing for lost because of a router that never answered', async () => {
    router.addresses.delete(hop6);
    await watch(place);
    await clock.advance(10_000);
    assert.deepEqual([lost(), why()], [['::/0?'], []]);
  });

  it('sees that the carrier is gone within 50 ms, asks nobody then, and waits for the router when it is back', async () => {
    await watch(place);
    down.add('eth0');
    await clock.advance(50);
    assert.deepEqual(
      [lost(), why()],
      [
        [ipv4, ipv6],
        ['eth0 4 carrier', 'eth0 6 carrier'],
      ],
    );
    const sent = segment.sent.length;
    await clock.advance(1_000);
    assert.equal(segment.sent.length, sent);
    router.addresses.delete(hop6);
    down.delete('eth0');
    await clock.advance(1_200);
    assert.deepEqual([lost(), why()], [[ipv6], [`eth0 6 ${hop6}`]]);
  });

  it('loses only the EIPs of an interface that is not that of the default route, and all with the router of that', async () => {
    await watch(withSecond);
    assert.deepEqual(lost(), []);
    down.add('eth1');
    await clock.advance(50);
    assert.deepEqual([lost(), why()], [[far4], ['eth1 4 carrier']]);
    router.addresses.delete(hop4);
    await clock.advance(200);
    assert.deepEqual(lost(), [ipv4]);
  });

  it('notices a lost EIP interface beside a tunnel that stands on another one', async () => {
    const line = { interface: 'eth1', families: [{ family: 4, nextHop: hop4 }] } as const;
    await watch({ lines: [line], ways: [{ network: ipv4, announcedOn: [], leavesBy: 'eth1', isGone: false }] });
    assert.equal(segment.sent.at(-1)?.interfaceName, 'eth1');
    router.addresses.clear();
    await clock.advance(200);
    assert.deepEqual([lost(), why()], [[ipv4], [`eth1 4 ${hop4}`]]);
  });

  it('keeps EIPs that are announced on two interfaces while one of them is well', async () => {
    const both = {
      ...withSecond,
      ways: [{ network: far4, announcedOn: ['eth0', 'eth1'], leavesBy: undefined, isGone: false }],
    };
    await watch(both);
    down.add('eth1');
    await clock.advance(50);
    assert.deepEqual([lost(), why()], [[], ['eth1 4 carrier']]);
    router.addresses.clear();
    await clock.advance(200);
    assert.deepEqual(lost(), [far4]);
  });

  it('has lost an interface that was taken down, though the node has no address or route there any more', async () => {
    await watch(withSecond);
    down.add('eth0');
    await clock.advance(50);
    const gone = withSecond.ways.map((way) => ({ ...way, isGone: way.network !== far4 }));
    const lines = withSecond.lines.map(({ interface: name, families }) => {
      return { interface: name, families: families.map(({ family }) => ({ family, nextHop: undefined })) };
    });
    uplink.watch({ lines, ways: gone });
    await clock.advance(1_000);
    assert.deepEqual([lost(), why(), told], [[ipv4, ipv6], ['eth0 4 carrier', 'eth0 6 carrier'], 1]);
    down.delete('eth0');
    await clock.advance(2_000);
    assert.deepEqual(
      [lost(), why()],
      [
        [ipv4, ipv6],
        ['eth0 4 route', 'eth0 6 route'],
      ],
      'it is up, without its routes',
    );
    uplink.watch(withSecond);
    await clock.advance(100);
    assert.deepEqual([lost(), why()], [[], []]);
  });

  it('goes on knowing what is lost when another interface is watched as well', async () => {
    await watch(place);
    router.addresses.delete(hop4);
    await clock.advance(200);
    uplink.watch(withSecond);
    await clock.advance(200);
    assert.deepEqual([lost(), told], [[ipv4], 1]);
  });

  it('asks another router when the default route leads there, and on an interface that was made anew', async () => {
    await watch(place);
    const next = ip('10.6.0.2');
    uplink.watch({ ...place, lines: [{ interface: 'eth0', families: [{ family: 4, nextHop: next }] }] });
    await clock.advance(100);
    assert.deepEqual(lost(), ['0.0.0.0/0?']);
    router.addresses.add(next);
    await clock.advance(100);
    assert.deepEqual(lost(), []);
    told = 0;
    segment.interfaces.delete('eth0');
    await clock.advance(1_000);
    assert.equal(told, 0, 'a question that cannot be sent proves nothing; the carrier does');
    segment.interfaces.set('eth0', '66:00:00:00:00:03');
    await clock.advance(1_000);
    assert.deepEqual([told, segment.openSockets], [0, 2]);
  });
});
