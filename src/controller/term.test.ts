import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kinds, resourceOf } from '../api/kinds.ts';
import { LeaseLost } from '../runtime/control/lease-lost.ts';
import type { Resource } from '../runtime/kube/resource.ts';
import { startTestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { fastClock } from '../runtime/testing/fast-clock.ts';
import type { ControlLoop, ControlLoopDeps } from './loop/control-loop.ts';
import { followMembers } from './membership/members.ts';
import { slicesLoop } from './slices/control-loop.ts';
import { controlLoopDepsDuring, membersDuring } from './term.ts';
import { coreResources, startControlLoop } from './testing.ts';

const [, , pods] = coreResources as [Resource, Resource, Resource]; // The list has these three.
const slices = resourceOf('EgressEndpointSlice');

/** The slices part for one term after the other, as Leadership runs it; `lose` ends the present term. */
const inTerms = (deps: ControlLoopDeps): { readonly part: ControlLoop; lose(): void } => {
  const members = followMembers(deps.caches);
  let over = new AbortController();
  let isLeader = true;
  const make = (): ControlLoop => {
    const term = { signal: over.signal, isLeader: () => isLeader };
    return slicesLoop(controlLoopDepsDuring(term, deps), membersDuring(term, members));
  };
  let current = make();
  const part: ControlLoop = {
    name: 'slices',
    missing: () => current.missing(),
    run: async (signal) => {
      while (!signal.aborted) {
        const stop = (): void => over.abort();
        signal.addEventListener('abort', stop, { once: true });
        await current.run(over.signal);
        signal.removeEventListener('abort', stop);
        over = new AbortController();
        isLeader = true;
        current = make();
      }
    },
  };
  const lose = (): void => {
    isLeader = false;
    over.abort(new LeaseLost('RenewDeadline'));
  };
  return { part, lose };
};

test('a second term begins with what the caches hold, and follows what changes', async (t) => {
  const ours = Object.keys(kinds) as (keyof typeof kinds)[]; // Object.keys forgets that these are the names of kinds.
  const server = await startTestApiServer({ resources: [...coreResources, ...ours.map(resourceOf)] });
  t.after(() => server.stop());
  const putPod = (name: string, ip: string) =>
    server.put(pods, {
      metadata: { namespace: 'red', name, labels: { app: 'shop' } },
      ...{ spec: { nodeName: 'a' }, status: { phase: 'Running', podIP: ip } },
    });
  const listed = () =>
    server
      .list(slices)
      .flatMap(({ endpoints }) => (endpoints as { pod: string }[]).map(({ pod }) => pod)) // Written by the part.
      .toSorted();
  putPod('one', '10.244.0.1');
  server.put(resourceOf('EgressPolicy'), {
    metadata: { namespace: 'red', name: 'shop' },
    ...{ spec: { appliedTo: { podSelector: { matchLabels: { app: 'shop' } } } } },
  });
  let lose = (): void => {};
  const running = await startControlLoop({ access: server.access, clock: fastClock(20) }, (deps) => {
    const terms = inTerms(deps);
    lose = terms.lose;
    return terms.part;
  });
  t.after(() => running.stop());
  await eventually('the first term lists the pod', () => listed().includes('one'));

  lose();
  const writes = running.writes();
  await eventually('the second term has looked at everything', () => running.part.missing().length === 0);
  assert.equal(running.writes(), writes, 'nothing was left to do');
  putPod('two', '10.244.0.2');
  await eventually('the second term follows changes', () => listed().join(' ') === 'one two');
});
