import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  bindingText,
  type GatewayShape,
  gatewayObject,
  nodeObject,
  type PolicyShape,
  policyObject,
  putPolicy,
  step,
  worldOf,
} from '../testing/objects.ts';
import type { World } from '../testing/world.ts';

type Policies = Readonly<Record<string, PolicyShape>>;

const world = (gateway: GatewayShape, policies: Policies): World =>
  worldOf(
    [nodeObject('a')],
    [gatewayObject('g', gateway)],
    Object.entries(policies).map(([key, shape], at) => policyObject(key, { gateway: 'g', at, ...shape })),
  );

/** The addresses that each policy gets. */
const eips = (on: World): Record<string, string> => {
  const planned = step(on);
  return Object.fromEntries(planned.policies.map(({ key }) => [key, bindingText(planned, key).replace(/ on .*/, '')]));
};

const edit = (on: World, key: string, shape: PolicyShape): void =>
  putPolicy(on, policyObject(key, { gateway: 'g', ...shape }));
const editGateway = (on: World, shape: GatewayShape): void => {
  on.gateways.set('g', gatewayObject('g', shape));
};

const four = { ipv4: ['10.6.1.1-10.6.1.4'] };
const dual = { ipv4: ['10.6.1.1-10.6.1.3'], ipv6: ['fd00::1-fd00::3'] };

describe('allocator default', () => {
  it('gives every policy the default EIP and records them all', () => {
    const on = world({ ...four, default4: '10.6.1.3' }, { 'red/p1': {}, 'red/p2': {}, 'red/p3': {} });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.3', 'red/p2': '10.6.1.3', 'red/p3': '10.6.1.3' });
    assert.deepEqual(step(on).gateways[0]?.nodes[0]?.eips[0]?.policies, ['red/p1', 'red/p2', 'red/p3']);
  });

  it('follows the default EIP when the gateway names another', () => {
    const on = world({ ...four, default4: '10.6.1.3' }, { 'red/p1': {} });
    step(on);
    editGateway(on, { ...four, default4: '10.6.1.4' });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.4' });
  });

  it('shares one EIP too where the gateway names none', () => {
    const on = world(four, { 'red/p1': {}, 'red/p2': {} });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.1', 'red/p2': '10.6.1.1' });
    edit(on, 'red/p3', { at: 9 });
    assert.equal(eips(on)['red/p3'], '10.6.1.1');
  });
});

describe('allocator rr', () => {
  it('takes unused EIPs first, the default EIP last, and then shares the least used', () => {
    const policies = Object.fromEntries(
      Array.from({ length: 6 }, (_, index) => [`red/p${index}`, { allocator: 'rr' }]),
    );
    const given = eips(world({ ...four, default4: '10.6.1.1' }, policies));
    assert.deepEqual(Object.values(given).slice(0, 4), ['10.6.1.2', '10.6.1.3', '10.6.1.4', '10.6.1.1']);
    const uses = Object.values(given).toSorted();
    assert.deepEqual(
      [
        uses.length,
        new Set(uses).size,
        Math.max(...[...new Set(uses)].map((ip) => uses.filter((one) => one === ip).length)),
      ],
      [6, 4, 2],
    );
  });

  it('gives an EIP back with its last policy', () => {
    const on = world(four, { 'red/p1': { allocator: 'rr' }, 'red/p2': { allocator: 'rr' } });
    step(on);
    on.policies.delete('red/p1');
    assert.equal(step(on).gateways[0]?.usage.ipv4Free, 3);
    edit(on, 'red/p3', { allocator: 'rr', at: 9 });
    assert.deepEqual(eips(on), { 'red/p2': '10.6.1.2', 'red/p3': '10.6.1.1' });
  });

  it('walks a /8 and a /64 as easily as a handful', () => {
    const on = world({ ipv4: ['10.0.0.0/8'] }, { 'red/p1': { allocator: 'rr' } });
    assert.deepEqual(eips(on), { 'red/p1': '10.0.0.1' });
    const six = world({ ipv6: ['fd00::/64'] }, { 'red/p1': { allocator: 'rr' } });
    assert.deepEqual(eips(six), { 'red/p1': 'fd00::' });
    assert.equal(step(six).gateways[0]?.usage.ipv6Free, Number.MAX_SAFE_INTEGER);
  });
});

describe('allocator random', () => {
  it('draws by the uid of the policy and keeps what it has drawn', () => {
    const policies = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`red/p${index}`, { allocator: 'random' }]),
    );
    const on = world({ ipv4: ['10.6.1.1-10.6.1.200'] }, policies);
    const first = eips(on);
    assert.ok(new Set(Object.values(first)).size > 12);
    assert.deepEqual(eips(on), first);
    assert.deepEqual(eips(world({ ipv4: ['10.6.1.1-10.6.1.200'] }, policies)), first);
  });

  it('draws used EIPs too', () => {
    const on = world({ ipv4: ['10.6.1.1'] }, { 'red/p1': { allocator: 'random' }, 'red/p2': { allocator: 'random' } });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.1', 'red/p2': '10.6.1.1' });
  });
});

describe('allocator limit', () => {
  const policies = (many: number): Policies =>
    Object.fromEntries(Array.from({ length: many }, (_, index) => [`red/p${index}`, { allocator: 'limit' }]));

  it('fills an EIP up to the limit before the next', () => {
    const given = Object.values(eips(world({ ...four, eipLimit: 2 }, policies(5))));
    assert.deepEqual(given, ['10.6.1.1', '10.6.1.1', '10.6.1.2', '10.6.1.2', '10.6.1.3']);
  });

  it('shares on when every EIP is at the limit', () => {
    const given = Object.values(eips(world({ ipv4: ['10.6.1.1'], eipLimit: 2 }, policies(3))));
    assert.deepEqual(given, ['10.6.1.1', '10.6.1.1', '10.6.1.1']);
  });
});

describe('a given EIP', () => {
  it('wins over the allocator and may be shared', () => {
    const on = world(four, { 'red/p1': { ipv4: '10.6.1.4', allocator: 'rr' }, p2: { ipv4: '10.6.1.4' } });
    assert.deepEqual(eips(on), { p2: '10.6.1.4', 'red/p1': '10.6.1.4' });
  });

  it('is not given to a policy of the same moment that names none', () => {
    const on = world(four, { 'red/older': { allocator: 'rr' }, 'red/younger': { ipv4: '10.6.1.1' } });
    assert.deepEqual(eips(on), { 'red/older': '10.6.1.2', 'red/younger': '10.6.1.1' });
  });

  it('can be changed on a policy that is in use, and nobody else moves', () => {
    const on = world(four, { 'red/p1': { allocator: 'rr' }, 'red/p2': { allocator: 'rr' } });
    step(on);
    edit(on, 'red/p1', { ipv4: '10.6.1.4' });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.4', 'red/p2': '10.6.1.2' });
  });

  const refusals: readonly [string, GatewayShape, PolicyShape, string, RegExp][] = [
    [
      'outside the pool',
      four,
      { ipv4: '10.6.9.9' },
      'EipOutsidePool',
      /Policy red\/p asks for 10.6.9.9, which gateway g does not have to give\. Ask for/,
    ],
    ['an address of a node', { ipv4: ['10.0.0.1', '10.6.1.1'] }, { ipv4: '10.0.0.1' }, 'EipOutsidePool', /10\.0\.0\.1/],
    [
      'at a gateway without a pool',
      {},
      { ipv4: '10.6.1.1' },
      'PoolEmpty',
      /Gateway g of policy red\/p has no addresses\. Add addresses/,
    ],
    [
      'halves of two pairs',
      { ...dual, default4: '10.6.1.1', default6: 'fd00::1' },
      { ipv4: '10.6.1.1', ipv6: 'fd00::2' },
      'EipPairTaken',
      /10\.6\.1\.1 with fd00::2, which are not one pair at gateway g/,
    ],
  ];
  for (const [name, gateway, shape, reason, says] of refusals) {
    it(`is refused ${name}`, () => {
      const on = worldOf(
        [nodeObject('a', ['10.0.0.1'])],
        [gatewayObject('g', gateway)],
        [policyObject('red/p', { gateway: 'g', ...shape })],
      );
      const [policy] = step(on).policies;
      assert.equal(policy?.accepted.reason, reason);
      assert.match(policy?.accepted.sentence ?? '', says);
      assert.deepEqual(
        [policy?.binding, policy?.allocated.reason, policy?.traffic],
        [undefined, 'NotAccepted', 'drop'],
      );
    });
  }
});

describe('a pair', () => {
  it('joins equal places of both pools', () => {
    const on = world(dual, {
      'red/p1': { ipv4: '10.6.1.3' },
      'red/p2': { ipv6: 'fd00::2' },
      'red/p3': { allocator: 'rr' },
    });
    assert.deepEqual(eips(on), {
      'red/p1': '10.6.1.3,fd00::3',
      'red/p2': '10.6.1.2,fd00::2',
      'red/p3': '10.6.1.1,fd00::1',
    });
  });

  it('is what both default EIPs make, wherever they are', () => {
    const on = world(
      { ...dual, default4: '10.6.1.1', default6: 'fd00::3' },
      { 'red/p1': {}, 'red/p2': { allocator: 'rr' }, 'red/p3': { ipv6: 'fd00::3' } },
    );
    assert.deepEqual(eips(on), {
      'red/p1': '10.6.1.1,fd00::3',
      'red/p2': '10.6.1.2,fd00::2',
      'red/p3': '10.6.1.1,fd00::3',
    });
  });

  it('is free to be chosen by a policy that names both', () => {
    assert.deepEqual(eips(world(dual, { 'red/p1': { ipv4: '10.6.1.1', ipv6: 'fd00::3' } })), {
      'red/p1': '10.6.1.1,fd00::3',
    });
  });

  it('grows when the gateway gets the other family, and keeps what it has', () => {
    const on = world({ ipv4: dual.ipv4 }, { 'red/p1': { allocator: 'rr' }, 'red/p2': { allocator: 'rr' } });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.1', 'red/p2': '10.6.1.2' });
    const slots = step(on).policies.map(({ binding }) => binding?.slot);
    editGateway(on, dual);
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.1,fd00::1', 'red/p2': '10.6.1.2,fd00::2' });
    assert.deepEqual(
      step(on).policies.map(({ binding }) => binding?.slot),
      slots,
    );
  });

  it('of two records that disagree is that of the older policy', () => {
    const on = world(dual, { 'red/old': { allocator: 'rr' }, 'red/young': { allocator: 'rr' } });
    step(on);
    const spoil = (key: string, ipv6: string): void => {
      const object = on.policies.get(key);
      assert.ok(object);
      on.policies.set(key, { ...object, status: { eip: { ipv4: '10.6.1.1', ipv6 }, node: 'a', slot: 5 } });
    };
    spoil('red/old', 'fd00::1');
    spoil('red/young', 'fd00::2');
    assert.deepEqual(eips(on), { 'red/old': '10.6.1.1,fd00::1', 'red/young': '10.6.1.1,fd00::1' });
  });
});

describe('a pool that shrinks', () => {
  it('moves only the policies whose EIPs are gone', () => {
    const on = world(four, { 'red/p1': { allocator: 'rr' }, 'red/p2': { allocator: 'rr' } });
    step(on);
    editGateway(on, { ipv4: ['10.6.1.2-10.6.1.4'] });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.3', 'red/p2': '10.6.1.2' });
  });

  it('keeps the other half of a pair', () => {
    const on = world(dual, { 'red/p1': { allocator: 'rr' } });
    step(on);
    editGateway(on, { ipv4: ['10.6.1.2-10.6.1.4'], ipv6: dual.ipv6 });
    assert.deepEqual(eips(on), { 'red/p1': '10.6.1.2,fd00::1' });
  });

  it('down to nothing says so on the policy', () => {
    const on = world(four, { 'red/p1': { allocator: 'rr' } });
    step(on);
    editGateway(on, {});
    assert.deepEqual(eips(on), { 'red/p1': 'PoolEmpty' });
  });
});

describe('the node IP', () => {
  it('needs no pool and no EIP', () =>
    assert.deepEqual(eips(world({}, { 'red/p1': { useNodeIP: true } })), { 'red/p1': 'node IP' }));

  it('gives the EIP back when a policy changes to it', () => {
    const on = world(four, { 'red/p1': { allocator: 'rr' } });
    step(on);
    edit(on, 'red/p1', { useNodeIP: true });
    assert.equal(step(on).gateways[0]?.usage.ipv4Free, 4);
  });
});
