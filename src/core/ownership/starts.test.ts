/** Starts of agents, as stories: what a node finds in its kernel, and whether others let it have that. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventsIn, ownersOf, started, type Told } from './testing/story.ts';

describe('Ownership at a start', () => {
  it('keeps what it finds in its kernel at the start, also when voters answer late', () => {
    const stage = started();
    const [owner, ...voters] = stage.network.nodes;
    if (owner === undefined) assert.fail();
    stage.network.crash(owner);
    stage.run(600);
    for (const voter of voters) stage.network.cut(voter, owner);
    stage.network.start(owner);
    stage.run(600 + 3.5 * stage.timing.silenceMs);
    stage.network.healLinks();
    stage.run(1_500);
    assert.deepEqual(ownersOf(stage), ['n0']);
    assert.deepEqual(eventsIn(stage.told, 300), []);
  });

  it('gives its vote back to an owner whom it took for lost when it has asked in vain', () => {
    const stage = started({ gateways: 2, witnesses: 1 });
    const [owner, rival, witness] = [stage.node(0), stage.node(1), stage.node(2)];
    stage.network.crash(owner);
    stage.network.cut(owner, rival);
    stage.network.cut(rival, owner);
    stage.run(900);
    const isClaim = ({ node, effect }: Told) =>
      node === rival.name && effect.kind === 'send' && effect.message.kind === 'claim';
    assert.ok(stage.told.some(isClaim), 'it has asked');
    stage.network.healLinks();
    stage.network.start(owner);
    stage.run(1_300);
    stage.network.powerOff(witness);
    stage.run(1_700);
    assert.deepEqual(ownersOf(stage), ['n0']);
    assert.deepEqual(eventsIn(stage.told, 300), []);
  });
});
