import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { endpointText, parseSockets, readSockets, socketsOf } from './sockets.ts';

describe("the kernel's socket tables", () => {
  it('are read line by line', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 0000000000000000 100 0 0 10 0',
      '   1: 0A00F40A:1004 0101F40A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1235 1 0000000000000000 20 4 0 10 -1',
      '   2: 0A00F40A:1004 0101F40A:9C41 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0000000000000000',
      '',
    ].join('\n');
    assert.deepEqual(parseSockets(table), [
      { localPort: 2024, remote: '00000000:0000', state: 'listen', inode: '1234' },
      { localPort: 4100, remote: '0101F40A:9C40', state: 'established', inode: '1235' },
      { localPort: 4100, remote: '0101F40A:9C41', state: 'other', inode: '0' },
    ]);
  });

  it('write addresses as we do', () => {
    assert.equal(endpointText(ip('10.244.1.1'), 40000), '0101F40A:9C40');
    assert.equal(endpointText(ip('2001:db8::1'), 80), 'B80D0120000000000000000001000000:0050');
  });

  it('show real sockets of both families and whose they are', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer().listen(0, host);
      await once(server, 'listening');
      const address = server.address();
      assert.ok(typeof address === 'object' && address !== null);
      const client = connect(address.port, host);
      const [accepted] = await once(server, 'connection');
      const rows = readSockets(process.pid);
      const own = socketsOf(process.pid);
      const listening = rows.filter(({ localPort, state }) => localPort === address.port && state === 'listen');
      assert.deepEqual(
        listening.map(({ inode }) => own.has(inode)),
        [true],
      );
      const towards = endpointText(ip(host), address.port);
      assert.equal(rows.filter(({ remote, state }) => remote === towards && state === 'established').length, 1);
      client.destroy();
      accepted.destroy();
      server.close();
    }
  });

  it('are empty for a process that is gone', () => {
    assert.deepEqual(readSockets(2 ** 30), []);
    assert.deepEqual(socketsOf(2 ** 30), new Set());
  });
});
