/**
 * What the parts of the leader get for one term: a client that refuses to write once the lease is lost, and caches and members
 * that call nobody back after it. A term is to them what a start of the process is, but that nothing is read anew.
 */
import { clientDuring, type Term } from '../runtime/control/leadership.ts';
import type { CacheByKind, ControllerCache, ControllerCaches } from './loop/caches.ts';
import type { ControlLoopDeps } from './loop/control-loop.ts';
import type { Members } from './membership/members.ts';

export const controlLoopDepsDuring = (term: Term, deps: ControlLoopDeps): ControlLoopDeps => {
  const { client, caches, config } = deps;
  return {
    ...deps,
    client: clientDuring(client, term),
    caches: cachesDuring(term.signal, caches),
    config: {
      get current() {
        return config.current;
      },
      changed: (listener) => ending(term.signal, config.changed(listener)),
    },
  };
};

export const membersDuring = ({ signal }: Term, members: Members): Members => ({
  ...members,
  subscribe: (listener) => ending(signal, members.subscribe(listener)),
});

const cachesDuring = (signal: AbortSignal, caches: ControllerCaches): ControllerCaches => {
  const during = <T, I extends string>(cache: ControllerCache<T, I>): ControllerCache<T, I> => ({
    store: cache.store,
    synced: cache.synced,
    get isSynced() {
      return cache.isSynced;
    },
    get unreadable() {
      return cache.unreadable;
    },
    stats: () => cache.stats(),
    subscribe: (listener) => {
      // Who comes when the caches are filled would never hear of what is there already.
      for (const [key, value] of cache.store.entries()) listener({ kind: 'put', key, value, previous: undefined });
      return ending(signal, cache.subscribe(listener));
    },
  });
  const byKind: CacheByKind = {
    nodes: during(caches.nodes),
    namespaces: during(caches.namespaces),
    pods: during(caches.pods),
    gateways: during(caches.gateways),
    policies: during(caches.policies),
    clusterPolicies: during(caches.clusterPolicies),
    tunnels: during(caches.tunnels),
    clusterInfos: during(caches.clusterInfos),
    slices: during(caches.slices),
    clusterSlices: during(caches.clusterSlices),
  };
  return { ...caches, ...byKind };
};

/** Calls `end` when the signal is aborted, if nobody did before. */
const ending = (signal: AbortSignal, end: () => void): (() => void) => {
  signal.addEventListener('abort', end, { once: true });
  return () => {
    signal.removeEventListener('abort', end);
    end();
  };
};
