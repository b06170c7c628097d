/** The mirror as it runs in agents: threads in two network namespaces, packets between them, and two kernels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MirrorClient } from '../../src/agent/mirror/mirror-client.ts';
import { MirrorThread } from '../../src/agent/mirror/mirror-thread.ts';
import type { MirrorPlan, MirrorStats } from '../../src/agent/mirror/port.ts';
import type { Connection } from '../../src/dataplane/conntrack/connection.ts';
import { createConnections } from '../../src/dataplane/conntrack/connections.ts';
import { sample, sampleConnection } from '../../src/dataplane/conntrack/testing/connections-conformance.ts';
import { areSameConnections } from '../../src/dataplane/conntrack/testing/fake-connections.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import { type Namespace, openNamespace } from './namespace.ts';

const PORT = 7792;
const ips = [sample[4].eip, sample[6].eip];

const endings = { a: '1', b: '2' } as const;
type Name = keyof typeof endings;

for (const [family, prefix] of [
  ['IPv4', '192.200.0.'],
  ['IPv6', 'fd92::'],
] as const) {
  test(`connections of one node are made on another that takes over, over ${family}`, async (t) => {
    await using a = await openNamespace('mirror-a');
    await using b = await openNamespace('mirror-b');
    const namespaces: Readonly<Record<Name, Namespace>> = { a, b };
    await a.must('ip', 'link', 'add', 'way', 'type', 'veth', 'peer', 'name', 'way', 'netns', b.name);
    for (const name of ['a', 'b'] as const) {
      const bits = family === 'IPv4' ? ['/24'] : ['/64', 'nodad'];
      const [length = '', ...flags] = bits;
      await namespaces[name].must('ip', 'link', 'set', 'way', 'up');
      await namespaces[name].must('ip', 'addr', 'add', `${prefix}${endings[name]}${length}`, 'dev', 'way', ...flags);
    }
    const connections = createConnections({ libc: await loadLibc(), timeouts: () => ({ tcp: 600, udp: 60 }) });
    const listed = (name: Name): Connection[] => {
      const found: Connection[] = [];
      inNamespace(namespaces[name].name, () => connections.list((connection) => found.push(connection)));
      return found;
    };
    const stats: Partial<Record<Name, MirrorStats>> = {};
    const problems: unknown[] = [];
    const start = (name: Name): MirrorThread => {
      const data = {
        node: name,
        address: `${prefix}${endings[name]}`,
        port: PORT,
        keys: [new Uint8Array(32)] as const,
      };
      const thread = inNamespace(
        namespaces[name].name,
        () =>
          new MirrorThread(data, {
            stats: (now) => {
              stats[name] = now;
            },
            refused: (why) => problems.push(why),
            failed: (error) => problems.push(error),
          }),
      );
      t.after(() => thread.close());
      return thread;
    };
    const threads = { a: start('a'), b: start('b') };
    await Promise.all([threads.a.listening(), threads.b.listening()]);
    const addresses = new Map(Object.entries(endings).map(([name, ending]) => [name, `${prefix}${ending}`]));
    const plan: MirrorPlan = { owned: [], awaited: [], addresses, replyMark: 0x27000012 };

    const first = Array.from({ length: 500 }, (_, index) =>
      sampleConnection({ port: 1024 + index, eipPort: 3000 + index }),
    );
    inNamespace(a.name, () => connections.put(first));
    threads.b.set(plan);
    threads.a.set({ ...plan, owned: [{ ips, successors: ['b'] }] });
    await eventually('the successor has what was there', () => stats.b?.held === first.length);

    const [second, third] = [5000, 5001].map((eipPort) =>
      sampleConnection({ family: 6, protocol: 'udp', eipPort, port: eipPort }),
    );
    assert.ok(second !== undefined && third !== undefined);
    inNamespace(a.name, () => connections.put([second, third]));
    const flow = (port: number): string[] =>
      `-p udp -s ${sample[6].pod} -d ${sample[6].outside} --sport ${port} --dport 80`.split(' ');
    for (const { eipPort } of [second, third]) await a.must('conntrack', '-U', ...flow(eipPort), '-t', '500');
    await eventually('the successor has what came', () => stats.b?.held === 502);
    await a.must('conntrack', '-D', ...flow(third.eipPort));
    await eventually('the successor has forgotten what went', () => stats.b?.held === 501);
    assert.deepEqual(listed('b'), []);

    await using _ = { [Symbol.asyncDispose]: () => threads.a.close() };
    const asker = new MirrorClient(threads.b.port());
    // The agent's word that it owns them now comes over another channel, and may be the first to be heard.
    threads.b.set({ ...plan, owned: [{ ips, successors: [] }] });
    await asker.takeOver(ips, 0);
    asker.close();
    assert.ok(areSameConnections(listed('b'), [...first, second]));
    assert.deepEqual(problems, []);
  });
}

test('a thread that cannot have its address says so', async () => {
  await using a = await openNamespace('mirror-none');
  const failed = Promise.withResolvers<Error>();
  const data = { node: 'a', address: '192.200.0.9', port: PORT, keys: [new Uint8Array(32)] as const };
  const hooks = { stats: () => {}, refused: () => {}, failed: (error: Error) => failed.resolve(error) };
  const thread = inNamespace(a.name, () => new MirrorThread(data, hooks));
  await assert.rejects(thread.listening());
  assert.match((await failed.promise).message, /EADDRNOTAVAIL/);
  await thread.close();
});
