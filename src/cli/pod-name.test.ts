import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { choosePod, readPodName } from './pod-name.ts';
import { pod } from './testing/shop.ts';

describe('readPodName', () => {
  const cases: readonly [string, string][] = [
    ['web-0', 'here/web-0'],
    ['shop/web-0', 'shop/web-0'],
    ['pod/web-0', 'here/web-0'],
    ['shop/pod/web-0', 'shop/web-0'],
    ['deploy/web', 'here/web of a Deployment'],
    ['shop/sts/web', 'shop/web of a StatefulSet'],
    ['daemonset/web', 'here/web of a DaemonSet'],
    // A namespace that is called like a kind: three parts, or -n, tell it.
    ['job/pod/web-0', 'job/web-0'],
  ];
  for (const [written, meant] of cases) {
    it(`reads ${written}`, () => {
      const read = readPodName(written, 'here');
      assert.ok(read.ok);
      const { namespace, name, owner } = read.value;
      assert.equal(`${namespace}/${name}${owner === undefined ? '' : ` of a ${owner}`}`, meant);
    });
  }

  for (const written of ['', 'Web', 'a//b', '/b', 'a/b/c/d', 'web 0', '../web']) {
    it(`refuses ${JSON.stringify(written)}`, () => {
      const read = readPodName(written, 'here');
      assert.equal(
        read.ok ? '' : read.sentence,
        `${JSON.stringify(written)} is not a valid pod name: write POD, NAMESPACE/POD, or a workload such as deploy/NAME.`,
      );
    });
  }

  it('refuses a namespace that is none', () => {
    const read = readPodName('web-0', 'no/where');
    assert.equal(read.ok ? '' : read.sentence, '"no/where" is not a valid namespace: write -n NAMESPACE.');
  });

  it('refuses a kind that has no pods', () => {
    const read = readPodName('shop/service/web', 'here');
    assert.match(read.ok ? '' : read.sentence, /^"service" is not a kind of workload that has pods: write POD/);
  });
});

describe('choosePod', () => {
  const pods = [pod('orders-5d8c-a'), pod('orders-5d8c-b'), pod('cart-5d8c-a', 9, 'cart')];
  const chosen = (name: string, owner?: 'Deployment' | 'Job', among = pods): string => {
    const answer = choosePod({ namespace: 'shop', name, owner }, among);
    return answer.ok ? `${answer.value.pod.metadata.name} ${answer.value.note ?? ''}`.trim() : answer.sentence;
  };

  it('takes the pod of that name', () => assert.equal(chosen('orders-5d8c-b'), 'orders-5d8c-b'));

  it('takes the only pod whose name begins so', () => assert.equal(chosen('cart'), 'cart-5d8c-a'));

  it('takes one of many that are alike, and says so', () => {
    assert.equal(
      chosen('orders'),
      'orders-5d8c-a This is one of 2 pods of the same workload: orders-5d8c-a, orders-5d8c-b.',
    );
    assert.equal(chosen('orders', 'Deployment'), chosen('orders'));
  });

  it('prefers a pod that runs', () => {
    const [first = pod('x'), second = pod('y')] = pods;
    const finished = { ...first, status: { ...first.status, phase: 'Failed' } };
    assert.match(chosen('orders', 'Deployment', [finished, second]), /^orders-5d8c-b /);
  });

  it('does not take the pods of a Deployment whose name only begins so', () => {
    assert.match(chosen('order', 'Deployment'), /^There is no pod of the Deployment order in namespace shop;/);
  });

  it('lets the reader choose among different ones', () => {
    const alone = { metadata: { name: 'orders-debug', namespace: 'shop' } };
    assert.equal(
      chosen('orders', undefined, [...pods, alone]),
      'The names of several pods begin with orders: orders-5d8c-a, orders-5d8c-b, orders-debug; choose one of them.',
    );
  });

  it('says what to do when there is none', () => {
    assert.equal(
      chosen('web'),
      'There is no pod web in namespace shop; choose another namespace with -n NAMESPACE or NAMESPACE/POD.',
    );
  });
});
