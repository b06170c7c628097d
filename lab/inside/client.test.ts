import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { until } from '../host/wait.ts';
import { Stream } from './client.ts';

test('a stream tells how often kept connections were opened again, and how many they are', async (t) => {
  let opened = 0;
  const server = createServer((socket) => {
    opened += 1;
    // Two connections are closed at once, and one of them once more.
    if (opened <= 3) socket.destroy();
    else socket.on('data', () => socket.write('{"address":"127.0.0.1","port":1}\n'));
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const question = { transport: 'tcp', host: '127.0.0.1', port: address.port, limitMs: 5_000 } as const;
  const stream = new Stream(question, { everyMs: 5, isKept: true, connections: 2 });
  t.after(() => stream.stop());
  await until(
    { what: 'both to be answered', limitMs: 30_000 },
    () => opened === 5 && stream.tally().answers['127.0.0.1'],
  );
  const { reopened, broken } = stream.stop();
  assert.deepEqual({ reopened, broken }, { reopened: 3, broken: 2 });
});
