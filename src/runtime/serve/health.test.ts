import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { type HealthDeps, HealthServer } from './health.ts';

const host = '127.0.0.1';
const open: HealthServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

function make(deps: Partial<HealthDeps> = {}): HealthServer {
  const server = new HealthServer({
    clock: systemClock,
    log: createLog({ process: 'test', level: 'silent' }),
    metrics: { contentType: 'text/plain; version=0.0.4', metrics: async () => 'sallyport_up 1\n' },
    readiness: [],
    ...deps,
  });
  open.push(server);
  return server;
}

async function get(port: number, path: string, method = 'GET') {
  const response = await fetch(`http://${host}:${port}${path}`, { method });
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
}

test('readiness names every check, and says what is missing', async () => {
  let lack: string | undefined = 'waits for the first list of pods';
  const readiness = [
    { name: 'policies', missing: () => lack },
    { name: 'certificates', missing: () => undefined },
  ];
  const port = await make({ readiness }).listen({ host, port: 0 });
  assert.deepEqual(await get(port, '/readyz'), {
    status: 503,
    text: '[-] policies: waits for the first list of pods\n[+] certificates\n[+] process\nnot ok: policies\n',
    type: 'text/plain; charset=utf-8',
  });
  lack = undefined;
  const { status, text } = await get(port, '/readyz?verbose');
  assert.equal(status, 200);
  assert.equal(text, '[+] policies\n[+] certificates\n[+] process\nok\n');
});

test('a process that stops is alive but not ready', async () => {
  const stopping = new AbortController();
  const port = await make({ stopping: stopping.signal }).listen({ host, port: 0 });
  assert.equal((await get(port, '/readyz')).status, 200);
  stopping.abort();
  const { status, text } = await get(port, '/readyz');
  assert.equal(status, 503);
  assert.match(text, /\[-\] process: is stopping/);
  assert.equal((await get(port, '/livez')).status, 200);
});

test('metrics have the text and type of the registry', async () => {
  const port = await make().listen({ host, port: 0 });
  assert.deepEqual(await get(port, '/metrics'), {
    status: 200,
    text: 'sallyport_up 1\n',
    type: 'text/plain; version=0.0.4',
  });
});

test('other paths, other methods and a failing part are answered, and the server goes on', async () => {
  const metrics = {
    contentType: 'text/plain',
    metrics: async () => {
      throw new Error('collector failed');
    },
  };
  const port = await make({ metrics }).listen({ host, port: 0 });
  assert.equal((await get(port, '/')).status, 404);
  assert.equal((await get(port, '/livez', 'POST')).status, 405);
  assert.equal((await get(port, '/metrics')).status, 500);
  assert.equal((await get(port, '/livez')).status, 200);
});

test('a port in use is one sentence', async () => {
  const port = await make().listen({ host, port: 0 });
  await assert.rejects(make().listen({ host, port }), {
    code: 'PORT_IN_USE',
    message: `the health server cannot listen on 127.0.0.1 port ${port}: another process uses it`,
  });
});

test('an address of another machine is one sentence', async () => {
  await assert.rejects(make().listen({ host: '192.0.2.1', port: 0 }), {
    code: 'PORT_IN_USE',
    message: /this machine does not have the address/,
  });
});

test('closing twice is harmless', async () => {
  const server = make();
  await server.listen({ host, port: 0 });
  await server.close();
  await server.close();
});

test('metrics and pages are for whom mayRead lets, health is for everybody', async () => {
  const asked: (string | undefined)[] = [];
  const mayRead: HealthDeps['mayRead'] = async (authorization, path) => {
    asked.push(`${path} ${authorization}`);
    return authorization === 'Bearer good' ? 'allowed' : authorization === undefined ? 'unknown' : 'forbidden';
  };
  const page = async () => ({ status: 200, contentType: 'text/plain', body: 'secret' });
  const port = await make({ mayRead, pages: { '/report': page } }).listen({ host, port: 0 });
  const read = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://${host}:${port}${path}`, { headers });
    return [response.status, (await response.text()).includes('secret')];
  };
  assert.deepEqual(await read('/livez'), [200, false]);
  assert.deepEqual(await read('/readyz'), [200, false]);
  assert.deepEqual(asked, []);
  assert.deepEqual(await read('/metrics'), [401, false]);
  assert.deepEqual(await read('/report'), [401, false]);
  assert.deepEqual(await read('/report?x'), [401, false]);
  assert.deepEqual(await read('/report', { authorization: 'Bearer bad' }), [403, false]);
  assert.deepEqual(await read('/report', { authorization: 'Bearer good' }), [200, true]);
  assert.deepEqual(await read('/report', { 'x-sallyport-authorization': 'Bearer good' }), [200, true]);
  assert.deepEqual(await read('/nowhere'), [404, false]);
});
