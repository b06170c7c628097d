import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatSet } from '../ip/index.ts';
import { indexPolicies } from '../policies/policy-index.ts';
import { projectClusterPolicy, projectPolicy } from '../project/index.ts';
import { podOn } from '../testing/nodes.ts';
import { type PolicyShape, policyObject } from '../testing/objects.ts';
import { assignClassNumbers, createClassifier, netsOf } from './classes.ts';

const indexOf = (policies: Readonly<Record<string, PolicyShape>>) =>
  indexPolicies(
    Object.entries(policies).map(([key, shape], at) => {
      const object = policyObject(key, { at, ...shape });
      return key.includes('/') ? projectPolicy(object) : projectClusterPolicy(object);
    }),
  );
const byAddress = (...podSubnet: readonly string[]): PolicyShape => ({ appliedTo: { podSubnet } });
const nets = (policies: Readonly<Record<string, PolicyShape>>): string[] =>
  netsOf(indexOf(policies))
    .flatMap((net) => formatSet(net.addresses).map((range) => `${range} ${net.class.name}`))
    .toSorted();

describe('netsOf', () => {
  it('has the policies of each address in order of precedence', () => {
    const policies = {
      wide: { ...byAddress('10.0.0.0/8', 'fd00::/8'), priority: 2 },
      narrow: { ...byAddress('10.1.0.0/16'), priority: 1 },
      single: { ...byAddress('10.1.0.7', '192.0.2.1-192.0.2.2'), priority: 3 },
    };
    assert.deepEqual(nets(policies), [
      '10.0.0.0/16 wide',
      '10.1.0.0-10.1.0.6 narrow,wide',
      '10.1.0.7 narrow,wide,single',
      '10.1.0.8-10.1.255.255 narrow,wide',
      '10.2.0.0-10.255.255.255 wide',
      '192.0.2.1-192.0.2.2 single',
      'fd00::/8 wide',
    ]);
  });

  it('keeps neighbours with other policies apart and joins those with the same', () => {
    assert.deepEqual(nets({ a: byAddress('10.0.0.0/25'), b: byAddress('10.0.0.128/25') }), [
      '10.0.0.0/25 a',
      '10.0.0.128/25 b',
    ]);
    assert.deepEqual(nets({ a: byAddress('10.0.0.0/25', '10.0.0.128/25') }), ['10.0.0.0/24 a']);
  });

  it('leaves out policies that ask for more than an address, or belong to a namespace', () => {
    const selective = { appliedTo: { podSubnet: ['10.0.0.0/8'], namespaceSelector: { matchLabels: { team: 'a' } } } };
    assert.deepEqual(nets({ selective, 'red/own': byAddress('10.0.0.0/8'), labels: {} }), []);
  });
});

describe('the class of an address', () => {
  const index = indexOf({ 'red/a': { appliedTo: { podSelector: { matchLabels: { app: 'a' } } } } });
  const classes = (...pods: Parameters<ReturnType<typeof createClassifier>>[1]) =>
    [...createClassifier()(index, pods, () => ({}))].map(([ip, found]) => `${ip} ${found.name}`);

  it('is that of its pod; bystanders have none', () => {
    const pods = [podOn('w', 'red/p', ['10.0.0.1', 'fd00::1'], { app: 'a' }), podOn('w', 'red/q', ['10.0.0.2'])];
    assert.deepEqual(classes(...pods), ['10.0.0.1 red/a', 'fd00::1 red/a']);
  });

  it('does not depend on order when two pods have the address', () => {
    const other = indexOf({
      'red/a': { appliedTo: { podSelector: { matchLabels: { app: 'a' } } } },
      'red/b': { appliedTo: { podSelector: { matchLabels: { app: 'b' } } } },
    });
    const pods = [podOn('w', 'red/p', ['10.0.0.1'], { app: 'a' }), podOn('w', 'red/q', ['10.0.0.1'], { app: 'b' })];
    for (const list of [pods, pods.toReversed()]) {
      const [found] = createClassifier()(other, list, () => ({})).values();
      assert.equal(found?.name, 'red/a');
    }
  });
});

describe('assignClassNumbers', () => {
  // Found by trying: these two names come to the same number.
  const [first, second] = collision();

  it('gives a class the same number wherever it is', () => {
    assert.equal(assignClassNumbers(['x', first]).get(first), assignClassNumbers([first, 'y']).get(first));
  });

  it('gives two classes with the same hash two numbers, whatever the order', () => {
    const [one, other] = [assignClassNumbers([first, second]), assignClassNumbers([second, first])];
    assert.notEqual(one.get(first), one.get(second));
    assert.deepEqual(one, other);
  });
});

function collision(): [string, string] {
  const names = new Map<number, string>();
  for (let index = 0; ; index += 1) {
    const name = `red/p${index}`;
    const number = assignClassNumbers([name]).get(name) ?? 0;
    const other = names.get(number);
    if (other !== undefined) return [other, name];
    names.set(number, name);
  }
}
