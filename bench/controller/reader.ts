/**
 * The baseline for lost watches: a process that watches policies and does nothing else. The API server closes a watch
 * whose few places for waiting events are full, and on a busy machine that happens to the fastest reader.
 * It writes the number of watches that it lost when its standard input ends.
 */
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { Informer } from '../../src/runtime/kube/informer.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { policies } from './cluster.ts';

const access = await loadAccess({ path: process.argv[2] ?? '' });
const [clock, random] = [systemClock, Math.random];
const client = createKubeClient({ access, userAgent: 'bench-reader', clock, random });
const informer = new Informer<true>({ client, resource: policies, project: () => undefined, clock, random });
const stop = new AbortController();
const following = informer.run(stop.signal);
await informer.synced;
const before = informer.stats().reconnects;
console.log('ready');
for await (const _ of process.stdin);
console.log(informer.stats().reconnects - before);
stop.abort();
await following;
await client.close();
