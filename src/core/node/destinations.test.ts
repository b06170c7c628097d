import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outsideOf } from '../cluster/outside.ts';
import type { PolicyView } from '../cluster/view.ts';
import { projectClusterInfo, projectPolicy } from '../project/index.ts';
import { type PolicyShape, policyObject } from '../testing/objects.ts';
import { classOf } from './classes.ts';
import { createDestinations, destinationsOf } from './destinations.ts';

const outside = outsideOf(
  projectClusterInfo({
    metadata: { name: 'default' },
    status: { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'] } } },
  }),
);
const policiesOf = (...shapes: readonly PolicyShape[]) =>
  shapes.map((shape, index) => projectPolicy(policyObject(`red/${'abcdef'[index]}`, shape)));
/** Ranges and the name of the policy that has them, `-` for nobody, and the policy that has the rest. */
const told = (...shapes: readonly PolicyShape[]): string[] => {
  const { parts, otherwise } = destinationsOf(classOf(policiesOf(...shapes)), outside);
  const ranges = parts.flatMap(({ ranges: texts, policy }) =>
    [...texts[4], ...texts[6]].map((range) => `${range} ${policy?.name ?? '-'}`),
  );
  return [...ranges, `rest ${otherwise?.name ?? '-'}`];
};
const to = (...destSubnet: readonly string[]): PolicyShape => ({ destSubnet });
const except = (...exceptSubnet: readonly string[]): PolicyShape => ({ exceptSubnet });

describe('destinationsOf', () => {
  it('gives an address to the first policy that is about it', () => {
    assert.deepEqual(told(to('198.51.100.7'), to('198.51.100.0/24', 'fd00::/64')), [
      '198.51.100.7 a',
      '198.51.100.0-198.51.100.6 b',
      '198.51.100.8-198.51.100.255 b',
      'fd00::/64 b',
      'rest -',
    ]);
  });

  it('gives everything outside to the first policy without destinations', () => {
    assert.deepEqual(told(to('198.51.100.7'), {}, {}), ['198.51.100.7 a', 'rest b']);
  });

  it('takes a range of the cluster that a policy names for what it says, also behind a default', () => {
    assert.deepEqual(told({}, to('10.244.7.0/24', '198.51.100.7')), ['10.244.7.0/24 b', 'rest a']);
  });

  it('lets an exception fall to the next policy that is about it', () => {
    assert.deepEqual(told(except('198.51.100.0/24'), to('198.51.100.7'), {}), [
      '198.51.100.7 b',
      '198.51.100.0-198.51.100.6 c',
      '198.51.100.8-198.51.100.255 c',
      'rest a',
    ]);
  });

  it('leaves an exception alone when no policy is left, and needs no entry inside the cluster', () => {
    assert.deepEqual(told(except('198.51.100.7', '10.244.0.0/16')), ['198.51.100.7 -', 'rest a']);
    assert.deepEqual(told({ ...to('198.51.100.6/31'), ...except('198.51.100.7') }), ['198.51.100.6 a', 'rest -']);
  });

  it('gives a policy whose exceptions cover it nothing', () => {
    assert.deepEqual(told({ ...to('198.51.100.7'), ...except('198.51.100.0/24') }, {}), ['rest b']);
  });
});

describe('createDestinations', () => {
  it('works out again only what has changed', () => {
    const destinations = createDestinations();
    const [a, b] = policiesOf(to('198.51.100.7'), {});
    assert.ok(a !== undefined && b !== undefined);
    const classes = (second: PolicyView) =>
      new Map([[a], [second], [a, second]].map((list) => [classOf(list).name, classOf(list)]));
    const before = destinations(classes(b), outside);
    const after = destinations(classes({ ...b }), outside);
    assert.deepEqual(after, before);
    assert.deepEqual(
      [...after].map(([name, found]) => found === before.get(name)),
      [true, false, false],
    );
  });
});
