import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { until } from '../host/wait.ts';
import { serveFlows } from '../outside/flows.ts';
import { startFlow } from './flow.ts';

const portOf = async (server: Server): Promise<number> => {
  if (!server.listening) await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
};
const host = '127.0.0.1';

test('an upload tells that every byte arrived', async () => {
  const server = serveFlows(0);
  const flow = startFlow({ kind: 'upload', host, port: await portOf(server), everyMs: 1 });
  await until({ what: 'a connection', limitMs: 20_000, everyMs: 5 }, () => flow.report().localPort > 0);
  const { failure, lastHeardAtMs } = await flow.stop();
  assert.equal(failure, undefined);
  assert.ok(lastHeardAtMs !== undefined);
  server.close();
});

test('a download is heard on and on; when the other end goes, the flow says so and does not come back', async () => {
  const sockets: Socket[] = [];
  const server = serveFlows(0);
  server.on('connection', (socket) => sockets.push(socket));
  const flow = startFlow({ kind: 'download', host, port: await portOf(server), everyMs: 1 });
  await until({ what: 'data', limitMs: 20_000, everyMs: 5 }, () => flow.report().lastHeardAtMs !== undefined);
  for (const socket of sockets) socket.destroy();
  await until({ what: 'the end', limitMs: 20_000, everyMs: 5 }, () => flow.report().failure !== undefined);
  assert.equal(sockets.length, 1);
  await flow.stop();
  server.close();
});

test('a ping-pong notes as whom the other end sees it, and the longest silence', async () => {
  let answers = 0;
  const server = createServer((socket) => {
    // A flow that is stopped may leave an answer unread, which resets its connection.
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      answers += 1;
      socket.write(`${JSON.stringify({ address: socket.remoteAddress, port: socket.remotePort })}\n`);
    });
  }).listen(0, host);
  const flow = startFlow({ kind: 'ping-pong', host, port: await portOf(server), everyMs: 1 });
  await until({ what: 'answers', limitMs: 20_000, everyMs: 5 }, () => answers > 20);
  const report = await flow.stop();
  assert.deepEqual(report.seenAs, [`${host}:${report.localPort}`]);
  assert.ok(report.longestGap.ms > 0);
  assert.equal(report.failure, undefined);
  server.close();
});
