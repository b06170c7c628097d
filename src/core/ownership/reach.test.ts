/** A node loses the outside in one family, or for the EIPs of one interface: what becomes of EIPs there. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cidr } from '../testing/address.ts';
import { bothFamilies, eip, eventsIn, ownersOf, started, uplink } from './testing/story.ts';

const [ipv4, ipv6] = bothFamilies;
/** A silence of its own, one for the message and the votes. */
const soonMs = 200;
const longMs = 3_000;

describe('a family is lost', () => {
  const lose = (stage: ReturnType<typeof started>, lostAt: readonly (readonly string[])[], forMs: number) => {
    for (const [index, networks] of lostAt.entries()) {
      stage.network.tell(stage.node(index), uplink(...networks));
    }
    stage.run(stage.network.timeMs + forMs);
  };

  for (const family of bothFamilies) {
    it(`a pair goes to a node that has both when its owner has lost ${family}, and does not come back`, () => {
      const stage = started();
      lose(stage, [[family], [family]], soonMs);
      assert.deepEqual(ownersOf(stage), ['n2'], 'n1 has lost the same');
      lose(stage, [[], []], longMs);
      assert.deepEqual(ownersOf(stage), ['n2']);
    });
  }

  it('nothing moves when all nodes have lost the same family, one after the other', () => {
    const stage = started();
    for (const index of [0, 1, 2]) {
      stage.network.at(300 + 30 * index, () => stage.network.tell(stage.node(index), uplink(ipv6)));
      stage.network.at(1_000 + 30 * (2 - index), () => stage.network.tell(stage.node(index), uplink()));
    }
    stage.run(longMs);
    assert.deepEqual([ownersOf(stage), eventsIn(stage.told, 300)], [['n0'], []]);
  });

  it('a pair stays when its owner has lost one family and the other nodes the other one', () => {
    const stage = started();
    lose(stage, [[ipv4], [ipv6], [ipv6]], longMs);
    assert.deepEqual([ownersOf(stage), eventsIn(stage.told, 300)], [['n0'], []]);
  });

  it('a pair goes from a node that has lost both to one that has lost one, and on to one that has lost none', () => {
    const stage = started();
    lose(stage, [bothFamilies, [ipv4], bothFamilies], soonMs);
    assert.deepEqual(ownersOf(stage), ['n1']);
    lose(stage, [bothFamilies, [ipv4], []], soonMs + 100);
    assert.deepEqual(ownersOf(stage), ['n2']);
    lose(stage, [bothFamilies, [ipv4], []], longMs);
    assert.deepEqual(eventsIn(stage.told, 300).filter(({ reason }) => reason === 'EipTakenOver').length, 2);
  });

  it('an EIP does not move when its owner has lost a network of other EIPs', () => {
    const stage = started();
    lose(stage, [['10.7.0.0/16']], longMs);
    assert.deepEqual(ownersOf(stage), ['n0']);
    lose(stage, [['10.6.0.0/16']], soonMs);
    assert.deepEqual(ownersOf(stage), ['n1']);
  });

  it('an EIP does not go to a node whose agent has just started and has not heard its router yet', () => {
    const stage = started({ gateways: 3 });
    lose(stage, [[ipv4], [ipv4], [ipv4]], soonMs);
    stage.network.crash(stage.node(1));
    stage.network.start(stage.node(1));
    stage.network.tell(stage.node(1), { kind: 'uplink', unreached: [{ network: cidr(ipv4), isLost: false }] });
    stage.run(stage.network.timeMs + longMs);
    assert.deepEqual(ownersOf(stage), ['n0']);
    lose(stage, [[ipv4], [], [ipv4]], soonMs);
    assert.deepEqual(ownersOf(stage), ['n1'], 'it has heard the router');
  });

  it('a node that has lost a family does not take a pair over while another one has both', () => {
    const stage = started();
    lose(stage, [[], [ipv6]], soonMs);
    stage.network.powerOff(stage.node(0));
    stage.run(stage.network.timeMs + 150);
    assert.deepEqual(ownersOf(stage), ['n2']);
  });

  it('a drain goes on where all nodes have lost the same family, and not to a node that has lost more', () => {
    for (const [lostAt, owner] of [
      [[[ipv6], [ipv6], [ipv6]], 'n1'],
      [[[ipv6], bothFamilies, [ipv6]], 'n0'],
    ] as const) {
      const stage = started();
      lose(stage, lostAt, soonMs);
      const epoch = stage.judge.changesOf(eip).at(-1)?.epoch ?? 0;
      const eips = stage.plan.eips.map((planned) => ({ ...planned, epoch, candidates: ['n1', 'n0', 'n2'] }));
      for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, eips });
      stage.run(stage.network.timeMs + longMs);
      assert.deepEqual(ownersOf(stage), [owner]);
    }
  });
});
