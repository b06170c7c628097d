import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Finding } from '../../core/cluster/finding.ts';
import type { TunnelView } from '../../core/cluster/view.ts';
import { projectTunnel } from '../../core/project/index.ts';
import { ip as ipOf } from '../../core/testing/address.ts';
import { createAnnouncer } from '../../dataplane/announce/announcer.ts';
import { createFakeSegment, type FakeHost, type FakeSegment } from '../../dataplane/announce/testing/fake-segment.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { EipClaims } from './claims.ts';

const claim = (text: string) => ({ ip: ipOf(text), interfaces: ['eth0'] });
const first = claim('192.0.2.1');
const second = claim('2001:db8::2');

const tunnelOf = (node: string, held: readonly string[]): TunnelView =>
  projectTunnel(
    { metadata: { name: node }, status: { report: { eips: held.map((ip) => ({ ip, epoch: 0 })) } } },
    'never',
  );

describe('Claims', () => {
  let clock: ManualClock;
  let segment: FakeSegment;
  let changes: number;
  let conflicts: Finding[];
  /** The EIPs that nodes agree this one to have. */
  let open: Set<string>;
  beforeEach(() => {
    clock = new ManualClock();
    segment = createFakeSegment({ eth0: '66:00:00:00:00:01' });
    changes = 0;
    conflicts = [];
    open = new Set();
  });
  const openClaims = (held: readonly string[] = []): EipClaims => {
    const announcer = createAnnouncer({ open: segment.open, clock, onConflict: () => {} });
    return new EipClaims(
      {
        node: 'a',
        announcer,
        clock,
        spawn: (_name, promise) => void promise,
        isOpen: (ip) => open.has(ip),
        onChange: () => {
          changes += 1;
        },
        hooks: { conflict: (_ip, found) => void conflicts.push(found) },
      },
      new Set(held.map(ipOf)),
    );
  };
  const wanting = (...claims: (typeof first)[]) => ({ claims, expected: [], standbys: [], unclaimed: [] });
  const states = ({ unclaimable }: EipClaims) =>
    [...unclaimable].map(([ip, state]) => `${ip} ${state === 'probing' ? state : state.reason}`);

  it('asks about a new EIP, and lets it be claimed when nobody answers in time', async () => {
    const claims = openClaims();
    assert.equal(claims.judge(wanting(first, second), []), true);
    assert.deepEqual(states(claims), ['192.0.2.1 probing', '2001:db8::2 probing']);
    let isSettled = false;
    const settled = claims.settled().then(() => {
      isSettled = true;
    });
    await clock.advance(24);
    assert.deepEqual([changes, isSettled], [0, false]);
    await clock.advance(1);
    await settled;
    assert.deepEqual(states(claims), []);
    assert.ok(changes > 0);
    assert.equal(claims.judge(wanting(first, second), []), false, 'what is known is not asked again');
    assert.equal(segment.openSockets, 0);
  });

  it('asks about an EIP that is foreseen at once, and not again when it is decided on', async () => {
    const claims = openClaims();
    const interfacesOf = () => ['eth0'];
    claims.foresee(first.ip, interfacesOf, []);
    claims.foresee(second.ip, interfacesOf, []);
    claims.foresee(first.ip, interfacesOf, []);
    assert.deepEqual(states(claims), ['192.0.2.1 probing', '2001:db8::2 probing']);
    await clock.advance(24);
    const asked = segment.sent.length;
    // Of two, the second is not wanted after all.
    assert.equal(claims.judge(wanting(first), []), true);
    assert.deepEqual([states(claims), segment.sent.length], [['192.0.2.1 probing'], asked]);
    await clock.advance(1);
    assert.deepEqual([states(claims), changes], [[], 1]);
    assert.equal(claims.judge(wanting(first, second), []), true, 'what was forgotten is asked about again');
    assert.deepEqual(states(claims), ['2001:db8::2 probing']);
  });

  it('does not ask about what is foreseen and held, here or elsewhere', () => {
    const claims = openClaims([first.ip]);
    claims.foresee(first.ip, () => ['eth0'], []);
    claims.foresee(second.ip, () => ['eth0'], [tunnelOf('b', [second.ip])]);
    assert.deepEqual([states(claims), segment.sent], [[], []]);
  });

  it('does not claim what another machine has, asks again every 30 s, and takes it when it is free', async () => {
    const machine = segment.host('66:00:00:00:00:99');
    machine.addresses.add(first.ip);
    const claims = openClaims();
    claims.judge(wanting(first), []);
    await clock.advance(25);
    assert.deepEqual(states(claims), ['192.0.2.1 EipInUse']);
    assert.match(
      conflicts[0]?.sentence ?? '',
      /^192\.0\.2\.1 is in use by 66:00:00:00:00:99, which node a sees on eth0\./,
    );
    const shown = claims.unclaimable;
    await clock.advance(30_000);
    assert.equal(conflicts.length, 2, 'asked again');
    assert.equal(claims.unclaimable, shown, 'the same answer changes nothing');
    machine.addresses.delete(first.ip);
    await clock.advance(29_999);
    assert.deepEqual(states(claims), ['192.0.2.1 EipInUse'], 'not before its time');
    await clock.advance(200);
    assert.deepEqual(states(claims), []);
    claims.close();
  });

  it('asks nothing about what the kernel held at the start, but does when the EIP returns later', async () => {
    const claims = openClaims(['192.0.2.1']);
    assert.equal(claims.judge(wanting(first), []), false);
    assert.equal(segment.sent.length, 0);
    claims.judge(wanting(), []);
    assert.equal(claims.judge(wanting(first), []), true);
    assert.deepEqual(states(claims), ['192.0.2.1 probing']);
    claims.close();
  });

  it('asks nothing about what another node reports to hold; its own old report does not count', () => {
    const claims = openClaims();
    assert.equal(claims.judge(wanting(first), [tunnelOf('b', ['192.0.2.1'])]), false);
    assert.equal(claims.judge(wanting(first, second), [tunnelOf('a', ['2001:db8::2'])]), true);
    assert.deepEqual(states(claims), ['2001:db8::2 probing']);
    claims.close();
  });

  it('does not ask about an EIP of another node that lies ready here, nor hold an old answer against it', async () => {
    const claims = openClaims();
    const standing = { claims: [], expected: [], standbys: [first], unclaimed: [] };
    assert.equal(claims.judge(standing, []), false);
    claims.judge(wanting(), []);
    claims.judge(wanting(first), []);
    assert.deepEqual(states(claims), ['192.0.2.1 probing']);
    claims.judge(standing, []);
    assert.deepEqual(states(claims), []);
  });

  it('forgets an EIP that is no longer wanted, also while it waits for an answer', async () => {
    const claims = openClaims();
    claims.judge(wanting(first), []);
    assert.equal(claims.judge(wanting(), []), true);
    assert.deepEqual(states(claims), []);
    await clock.advance(60_000);
    assert.equal(changes, 0);
  });

  describe('when another machine answers only after the claim', () => {
    const mac = '66:00:00:00:00:99';
    /** Claims of an EIP whose first question the machine has lost; nodes agree that this one has it. */
    const claimed = async (): Promise<{ readonly claims: EipClaims; readonly machine: FakeHost }> => {
      const machine = segment.host(mac);
      machine.addresses.add(first.ip);
      machine.losing = 2;
      const claims = openClaims();
      claims.judge(wanting(first), []);
      await clock.advance(25);
      assert.deepEqual(states(claims), []);
      open.add(first.ip);
      changes = 0;
      return { claims, machine };
    };

    it('lets the EIP go at its second answer, and treats it as one that was never claimed', async () => {
      const { claims, machine } = await claimed();
      await clock.advance(3_900);
      assert.deepEqual(states(claims), []);
      await clock.advance(300);
      assert.deepEqual([states(claims), changes], [['192.0.2.1 EipInUse'], 1]);
      assert.match(conflicts[0]?.sentence ?? '', /^192\.0\.2\.1 is in use by 66:00:00:00:00:99/);
      machine.addresses.delete(first.ip);
      await clock.advance(31_000);
      assert.deepEqual(states(claims), []);
      claims.close();
    });

    it('also when it loses one of the later questions', async () => {
      const { claims, machine } = await claimed();
      machine.losing = 2;
      await clock.advance(11_000);
      assert.deepEqual(states(claims), ['192.0.2.1 EipInUse']);
      claims.close();
    });

    it('goes on having an EIP that was heard once of each of two, as nodes that had it may be', async () => {
      const { claims, machine } = await claimed();
      await clock.advance(2_000);
      machine.addresses.delete(first.ip);
      segment.host('66:00:00:00:00:98').addresses.add(first.ip);
      await clock.advance(3_000);
      assert.deepEqual(states(claims), []);
      claims.close();
    });

    it('holds no answer against an EIP that is not answered for here at that time: it may be with another node', async () => {
      const { claims } = await claimed();
      await clock.advance(2_000);
      open.delete(first.ip);
      await clock.advance(3_000);
      open.add(first.ip);
      await clock.advance(60_000);
      assert.deepEqual([states(claims), conflicts, changes], [[], [], 0]);
    });

    it('asks no more when another node gets the EIP, nor when it comes back', async () => {
      const { claims } = await claimed();
      await clock.advance(2_000);
      claims.judge({ claims: [], expected: [], standbys: [first], unclaimed: [] }, []);
      const { length } = segment.sent;
      claims.judge(wanting(first), []);
      await clock.advance(60_000);
      assert.deepEqual([segment.sent.length, states(claims)], [length, []]);
    });

    it('ends with three questions when nobody answers', async () => {
      const { claims, machine } = await claimed();
      machine.addresses.clear();
      const { length } = segment.sent;
      await clock.advance(60_000);
      assert.deepEqual([segment.sent.length - length, states(claims), segment.openSockets], [6, [], 0]);
    });
  });
});
