/** The whole path: API server with faults -> informer -> controller -> client -> API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createKubeClient } from '../kube/http-client.ts';
import { Informer } from '../kube/informer.ts';
import { type KubeObject, type Resource, refOf } from '../kube/resource.ts';
import { systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { startTestApiServer } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import { Controller } from './controller.ts';
import { watch } from './watch.ts';

interface Note extends KubeObject {
  readonly text: string;
}

const originals: Resource = { group: 'test', version: 'v1', plural: 'originals', kind: 'Original', namespaced: true };
const copies: Resource = { group: 'test', version: 'v1', plural: 'copies', kind: 'Copy', namespaced: true };

function note(kind: string, name: string, text: string): Note {
  return { apiVersion: 'test/v1', kind, metadata: { namespace: 'default', name }, text };
}

test('a controller that keeps copies gets there through faults, repairs drift and removes orphans', async () => {
  const server = await startTestApiServer({ resources: [originals, copies] });
  const client = createKubeClient({
    access: server.access,
    userAgent: 'test',
    clock: systemClock,
    random: Math.random,
    rateLimit: { perSecond: 10_000, burst: 10_000 },
  });
  const deps = { client, clock: systemClock, random: Math.random };
  const project = ({ text }: Note): string => text;
  const sources = new Informer<string, never, Note>({ ...deps, resource: originals, project });
  const targets = new Informer<string, never, Note>({ ...deps, resource: copies, project });
  const controller = new Controller(
    {
      name: 'copies',
      watches: [watch('originals', sources), watch('copies', targets)],
      workers: 3,
      async reconcile(key, signal) {
        const ref = refOf(key);
        const wanted = sources.store.get(key);
        if (wanted === targets.store.get(key)) return { kind: 'done' };
        if (wanted === undefined) await client.delete(copies, ref, { signal });
        else await client.apply(copies, note('Copy', ref.name, wanted), { fieldManager: 'test', signal });
        return { kind: 'done' };
      },
    },
    { clock: systemClock, random: Math.random, log: createLog({ process: 'test', level: 'silent' }) },
  );
  const texts = (resource: Resource): Record<string, unknown> =>
    Object.fromEntries(server.list(resource).map((object) => [object.metadata.name, object.text]));
  const isEqual = (): boolean => isDeepStrictEqual(texts(originals), texts(copies));

  server.put(copies, note('Copy', 'orphan', 'nobody wants me'));
  for (let index = 0; index < 20; index += 1) server.put(originals, note('Original', `note-${index}`, 'first'));
  server.faults.add({ plural: 'copies', verb: 'apply' }, { kind: 'drop' }, 3);
  server.faults.add({ plural: 'copies', verb: 'apply' }, { kind: 'lose-answer' }, 3);
  server.faults.add({ plural: 'copies', verb: 'apply' }, { kind: 'answer', status: 500 }, 30);

  const stop = new AbortController();
  const runs = [sources.run(stop.signal), targets.run(stop.signal), controller.run(stop.signal)];
  try {
    await eventually('the first state is copied', isEqual, 30_000);
    // The last answer may still be on its way when the server has acted.
    await eventually('it is ready', () => controller.missing() === undefined);
    assert.equal(Object.keys(texts(copies)).length, 20);

    server.breakWatches('drop');
    server.put(originals, note('Original', 'note-1', 'second'));
    server.delete(originals, 'default/note-2');
    server.put(copies, note('Copy', 'note-3', 'drifted'));
    await eventually(
      'changes, deletes and drift are repaired',
      () => isEqual() && texts(copies)['note-1'] === 'second',
      30_000,
    );
    assert.equal(texts(copies)['note-3'], 'first');
    assert.equal(texts(copies)['note-2'], undefined);
  } finally {
    stop.abort();
    await Promise.all(runs);
    await client.close();
    await server.stop();
  }
});
