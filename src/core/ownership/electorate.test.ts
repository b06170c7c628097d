import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Electorate } from '../cluster/view.ts';
import { type Elector, planElectorate } from './electorate.ts';

type Shape = Partial<Omit<Elector, 'name'>>;

const node = (name: string, shape: Shape = {}): Elector => ({
  name,
  isGateway: true,
  isReady: true,
  isDraining: false,
  reported: undefined,
  ...shape,
});
const worker = { isGateway: false };
const lost = { isReady: false };
const text = (electorate: Electorate | undefined): string =>
  electorate === undefined
    ? 'none'
    : `${electorate.generation}: ${[...electorate.voters, ...(electorate.hasApi ? ['api'] : [])].join(' ')}`;

/** The nodes after their agents have read the electorate; those that are lost do not. */
const reporting = (nodes: readonly Elector[], electorate: Electorate | undefined): readonly Elector[] =>
  nodes.map((each) => (each.isReady ? { ...each, reported: electorate } : each));

/** All electorates until it is settled, when every node that is Ready reports each of them. */
const steps = (recorded: Electorate | undefined, nodes: readonly Elector[]): readonly string[] => {
  const seen: string[] = [];
  let present = recorded;
  for (let round = 0; round < 20; round += 1) {
    const { electorate } = planElectorate(present, reporting(nodes, present));
    if (electorate === present) return seen;
    present = electorate;
    seen.push(text(present));
  }
  throw new Error(`never settles: ${seen.join(', ')}`);
};

const of = (generation: number, voters: string, hasApi = false): Electorate => ({
  generation,
  voters: voters.split(' '),
  hasApi,
});

describe('the first electorate', () => {
  const workers = ['w1', 'w2', 'w3'].map((name) => node(name, worker));
  const gateways = (count: number): readonly Elector[] => [...'abcdefgh'].slice(0, count).map((name) => node(name));
  const cases: readonly (readonly [string, readonly Elector[], string])[] = [
    ['nobody without a gateway', workers, 'none'],
    ['nobody while nothing is ready', [node('a', lost)], 'none'],
    ['one node that is alone', gateways(1), '1: a'],
    ['two nodes and the API server', gateways(2), '1: a b api'],
    ['a gateway node and two witnesses', [...gateways(1), ...workers], '1: a w1 w2'],
    ['two gateway nodes and a witness', [...gateways(2), ...workers], '1: a b w1'],
    ['three gateway nodes', [...gateways(3), ...workers], '1: a b c'],
    ['three of four', [...gateways(4), ...workers], '1: a b c'],
    ['five of eight', [...gateways(8), ...workers], '1: a b c d e'],
    ['others before those that are drained', [node('a', { isDraining: true }), node('b'), ...workers], '1: b w1 w2'],
    ['those that are drained if there is nobody else', [node('a', { isDraining: true }), node('b')], '1: a b api'],
  ];
  for (const [name, nodes, wanted] of cases) {
    it(`is ${name}`, () => assert.equal(text(planElectorate(undefined, nodes).electorate), wanted));
  }
});

describe('an electorate', () => {
  const three = ['a', 'b', 'c'].map((name) => node(name));

  it('replaces a lost voter: adds, then removes', () => {
    assert.deepEqual(steps(of(4, 'a b c'), [node('a'), node('b'), node('c', lost), node('d')]), [
      '5: a b c d',
      '6: a b d',
    ]);
  });

  it('gives the API server a vote where two nodes are left, and takes it back', () => {
    const nodes = [node('a'), node('b'), node('c', lost)];
    assert.deepEqual(steps(of(1, 'a b c'), nodes), ['2: a b c api', '3: a b api']);
    assert.deepEqual(steps(of(3, 'a b', true), three), ['4: a b c api', '5: a b c']);
  });

  it('comes down to one node by way of the API server', () => {
    assert.deepEqual(steps(of(3, 'a b', true), [node('a'), node('b', lost)]), ['4: a api', '5: a']);
  });

  it('stays as it is when a node comes that is not needed, and when gateways go', () => {
    assert.deepEqual(steps(of(7, 'b c d'), [...three, node('d')]), []);
    assert.deepEqual(steps(of(7, 'a b c'), [node('a', worker), node('b', worker), node('c', worker)]), []);
  });

  it('keeps the witness that stood in for a gateway node when that is back', () => {
    const [b, w1, w2] = [node('b'), node('w1', worker), node('w2', worker)];
    assert.deepEqual(steps(of(1, 'a b w1'), [node('a', lost), b, w1, w2]), ['2: a b w1 w2', '3: b w1 w2']);
    assert.deepEqual(steps(of(3, 'b w1 w2'), [node('a'), b, w1, w2]), []);
  });

  it('replaces witnesses by gateway nodes where these are enough, and voters that are drained', () => {
    const nodes = [node('a'), node('b'), node('c'), node('w', worker)];
    assert.deepEqual(steps(of(1, 'a b w'), nodes), ['2: a b c w', '3: a b c']);
    const draining = [...three.slice(0, 2), node('c', { isDraining: true }), node('w', worker)];
    assert.deepEqual(steps(of(3, 'a b c'), draining), ['4: a b c w', '5: a b w']);
  });

  it('waits until every gateway node and voter that is ready has the last one', () => {
    const present = of(2, 'a b c');
    const nodes = reporting([node('a'), node('b'), node('c', lost), node('d'), node('w', worker)], present);
    const behind = nodes.map((each) => (each.name === 'd' ? { ...each, reported: of(1, 'a b c') } : each));
    assert.deepEqual(planElectorate(present, behind), { electorate: present, isSettled: false, awaited: ['d'] });
    const unaware = nodes.map((each) => (each.name === 'w' ? { ...each, reported: undefined } : each));
    assert.equal(
      text(planElectorate(present, unaware).electorate),
      '3: a b c d',
      'who has no part in it may be behind',
    );
  });

  it('does not change while its majority is away, until somebody deletes the Nodes', () => {
    const present = of(2, 'a b c');
    const nodes = reporting([node('a'), node('b', lost), node('c', lost), node('d')], present);
    assert.deepEqual(planElectorate(present, nodes), { electorate: present, isSettled: false, awaited: ['b', 'c'] });
    assert.deepEqual(steps(present, [node('a'), node('d')]), ['3: a b c d', '4: a b d', '5: a b d api', '6: a d api']);
  });

  it('is taken from the reports when its record is lost or old', () => {
    const nodes = reporting(three, of(9, 'a b c'));
    assert.equal(text(planElectorate(undefined, nodes).electorate), '9: a b c');
    assert.equal(text(planElectorate(of(3, 'a b'), nodes).electorate), '9: a b c');
  });
});

const names = [...'abcdefgh'];
const elector = (name: string): fc.Arbitrary<Elector | undefined> =>
  fc.option(
    fc
      .record({ isGateway: fc.boolean(), isReady: fc.boolean(), isDraining: fc.boolean() })
      .map((shape) => node(name, shape)),
    { nil: undefined },
  );
const cluster = fc
  .tuple(...names.map(elector))
  .map((nodes) => nodes.filter((each): each is Elector => each !== undefined));

describe('laws of the electorate, for clusters that change at random', () => {
  const votesOf = ({ voters, hasApi }: Electorate): ReadonlySet<string> =>
    new Set([...voters, ...(hasApi ? ['*api'] : [])]);
  const liveIn = (electorate: Electorate, nodes: readonly Elector[]): number =>
    [...votesOf(electorate)].filter(
      (vote) => vote === '*api' || nodes.some((each) => each.name === vote && each.isReady),
    ).length;
  const hasMajority = (electorate: Electorate, nodes: readonly Elector[]): boolean =>
    2 * liveIn(electorate, nodes) > votesOf(electorate).size;

  it('changes by one vote, keeps a majority that lives, and counts up by one', () => {
    fc.assert(
      fc.property(fc.array(cluster, { minLength: 1, maxLength: 8 }), fc.integer(), (clusters, seed) => {
        let present: Electorate | undefined;
        let round = seed;
        for (const nodes of clusters) {
          for (let tries = 0; tries < 3; tries += 1) {
            round = (round * 1_103_515_245 + 12_345) & 0x7fffffff;
            const told = round % 3 === 0 ? nodes : reporting(nodes, present);
            const { electorate } = planElectorate(present, told);
            if (electorate === undefined) assert.equal(present, undefined);
            else if (present !== undefined && electorate !== present) {
              assert.equal(votesOf(present).symmetricDifference(votesOf(electorate)).size, 1);
              assert.equal(electorate.generation, present.generation + 1);
              if (hasMajority(present, nodes)) assert.ok(hasMajority(electorate, nodes), text(electorate));
            }
            present = electorate;
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('settles on one, two with the API server, three or five votes of nodes that are ready, and stays', () => {
    fc.assert(
      fc.property(cluster, cluster, (before, after) => {
        const settle = (recorded: Electorate | undefined, nodes: readonly Elector[]): Electorate | undefined => {
          let present = recorded;
          for (let round = 0; round < 30; round += 1) {
            const { electorate, awaited } = planElectorate(present, reporting(nodes, present));
            if (electorate === present || awaited.length > 0) return present;
            present = electorate;
          }
          throw new Error('never settles');
        };
        const first = settle(undefined, before);
        const last = settle(first, after);
        if (last === undefined) return;
        const { isSettled } = planElectorate(last, reporting(after, last));
        const ready = after.filter(({ isReady }) => isReady).map(({ name }) => name);
        if (!isSettled || ready.length === 0 || !after.some(({ isGateway }) => isGateway)) return;
        assert.ok([1, 3, 5].includes(votesOf(last).size), text(last));
        assert.equal(last.hasApi, last.voters.length === 2);
        assert.ok(last.voters.every((voter) => ready.includes(voter)));
        assert.equal(settle(last, after), last);
      }),
      { numRuns: 500 },
    );
  });

  it('does not depend on the order of nodes', () => {
    fc.assert(
      fc.property(cluster, (nodes) => {
        assert.deepEqual(planElectorate(undefined, nodes.toReversed()), planElectorate(undefined, nodes));
      }),
    );
  });
});
