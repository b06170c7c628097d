import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EgressError } from '../../api/error.ts';
import type { Ip } from '../../core/ip/index.ts';
import { gatewayMark, markText, slotMark, snatMark } from '../../core/node/numbers.ts';
import { ip } from '../../core/testing/address.ts';
import type { Gone } from '../../dataplane/conntrack/conntrack.ts';
import { gatewayNode } from '../testing/gateway-node.ts';
import { type Connected, type Present, StaleConnections } from './stale-connections.ts';

const eip = ip('10.6.0.100');
const here = (slot: number): string => markText(snatMark(slot));
const elsewhere = (slot: number): string => markText(gatewayMark(1, slot));
const nothing: Connected = { slots: new Set(), eips: new Set() };
const { table } = gatewayNode().desired;

/** A node on which slots go their ways; all leave with the one EIP, which lies ready behind a gate. */
class World {
  readonly gone: Partial<Gone>[] = [];
  isOpen = true;
  isCarried = false;
  isBroken = false;
  readonly #connections: StaleConnections;

  constructor(found = nothing) {
    const forget = async (gone: Gone): Promise<number> => {
      if (this.isBroken) throw new EgressError('CONNTRACK_FAILED', 'not now');
      return this.gone.push(Object.fromEntries(Object.entries(gone).filter(([, list]) => list.length > 0)));
    };
    const gate = { isOpen: (one: Ip) => one === eip && this.isOpen, isCarried: () => this.isCarried };
    this.#connections = new StaleConnections({ forget }, gate, found);
  }

  owns(...eips: readonly Ip[]): void {
    this.#connections.owns(new Set(eips));
  }

  /** What is forgotten and changed when slots go these ways. */
  async settle(...ways: readonly (readonly [number, string])[]): Promise<Partial<Gone>[]> {
    const elements = {
      ...table.elements,
      slot_fwd: new Map(ways.map(([slot, way]) => [markText(slotMark(slot)), way])),
      slot_eip4: new Map(ways.map(([slot]) => [markText(snatMark(slot)), eip])),
      slot_eip6: new Map(),
    };
    const present: Present = { table: { ...table, elements }, eips: new Set([eip]), gated: new Set([eip]) };
    await this.#connections.settle(present);
    return this.gone.splice(0);
  }
}

describe('StaleConnections', () => {
  it('an EIP that comes: forgets nothing before its gate is open, so that the mirror has exchanged what goes on', async () => {
    const world = new World();
    await world.settle([1, elsewhere(1)]);
    world.isOpen = false;
    assert.deepEqual(await world.settle([1, here(1)]), []);
    assert.deepEqual(await world.settle([1, here(1)]), []);
    world.isOpen = true;
    assert.deepEqual(await world.settle([1, here(1)]), [{ here: [1] }]);
    assert.deepEqual(await world.settle([1, here(1)]), []);
  });

  it('an EIP that leaves by plan: while it is carried here, only what can go on elsewhere does', async () => {
    const world = new World();
    await world.settle([1, here(1)]);
    world.isCarried = true;
    assert.deepEqual(await world.settle([1, elsewhere(1)]), [{ carried: [1] }]);
    assert.deepEqual(await world.settle([1, elsewhere(1)]), []);
    world.isCarried = false;
    assert.deepEqual(await world.settle([1, elsewhere(1)]), [{ elsewhere: [1] }]);
    assert.deepEqual(await world.settle([1, elsewhere(1)]), []);
  });

  it('an EIP that is lost: everything changes at once', async () => {
    const world = new World();
    await world.settle([1, here(1)], [2, elsewhere(2)]);
    assert.deepEqual(await world.settle([1, elsewhere(1)], [2, elsewhere(2)]), [{ elsewhere: [1] }]);
  });

  it('an EIP that comes and leaves again before its gate has opened', async () => {
    const world = new World();
    await world.settle([1, elsewhere(1)]);
    world.isOpen = false;
    await world.settle([1, here(1)]);
    assert.deepEqual(await world.settle([1, elsewhere(1)]), [{ elsewhere: [1] }]);
  });

  it('an EIP that was here for so short a time that its slots never came', async () => {
    const world = new World();
    await world.settle([1, elsewhere(1)], [2, elsewhere(2)]);
    world.owns(eip);
    world.owns();
    assert.deepEqual(await world.settle([1, elsewhere(1)], [2, elsewhere(2)]), [{ elsewhere: [1, 2] }]);
    assert.deepEqual(await world.settle([1, elsewhere(1)], [2, elsewhere(2)]), []);
    world.owns(eip);
    assert.deepEqual(await world.settle([1, here(1)], [2, here(2)]), [{ here: [1, 2] }]);
    world.owns(eip);
    assert.deepEqual(await world.settle([1, here(1)], [2, here(2)]), []);
  });

  it('a slot that is new has nothing to forget, and one that is gone everything', async () => {
    const world = new World();
    assert.deepEqual(await world.settle([1, here(1)], [2, elsewhere(2)]), []);
    assert.deepEqual(await world.settle(), [{ slots: [1, 2] }]);
  });

  it('after a restart: any slot that was found may have left here, and one of no policy is gone', async () => {
    const world = new World({ slots: new Set([1, 2, 3]), eips: new Set([eip]) });
    assert.deepEqual(await world.settle([1, here(1)], [2, elsewhere(2)]), [{ slots: [3], here: [1], elsewhere: [2] }]);
    assert.deepEqual(await world.settle([1, here(1)], [2, elsewhere(2)]), []);
    const worker = new World({ slots: new Set([2]), eips: new Set() });
    assert.deepEqual(await worker.settle([2, elsewhere(2)]), [], 'a node without EIPs has translated nothing');
  });

  it('a failure is made good by the next call, whatever has changed meanwhile', async () => {
    const world = new World();
    await world.settle([1, here(1)], [2, here(2)]);
    world.isBroken = true;
    await assert.rejects(world.settle([1, elsewhere(1)], [2, here(2)]), { code: 'CONNTRACK_FAILED' });
    await assert.rejects(world.settle([1, elsewhere(1)]), { code: 'CONNTRACK_FAILED' });
    world.isBroken = false;
    assert.deepEqual(await world.settle([1, elsewhere(1)]), [{ slots: [2], elsewhere: [1] }]);
  });
});
