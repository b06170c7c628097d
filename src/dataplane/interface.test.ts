import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hasCarrier, indexOfInterface, macOfInterface } from './interface.ts';
import { errorText, loadLibc } from './libc.ts';

const AF_INET = 2;
const SOCK_DGRAM = 2;
const libc = await loadLibc();

const withSocket = (work: (socket: number) => void): void => {
  const socket = libc.socket(AF_INET, SOCK_DGRAM, 0);
  assert.ok(socket >= 0);
  try {
    work(socket);
  } finally {
    libc.close(socket);
  }
};

test('the loopback interface has the number that sysfs says, and is none for Ethernet', () => {
  withSocket((socket) => {
    const index = Number(readFileSync('/sys/class/net/lo/ifindex', 'utf8'));
    assert.equal(indexOfInterface(libc, socket, 'lo'), index);
    assert.equal(macOfInterface(libc, socket, 'lo'), '');
  });
});

test('an interface that is not there has no number, no MAC address and no carrier, and the kernel says why', () => {
  withSocket((socket) => {
    // Cut to the length of a name, the second would be one that is there.
    for (const name of ['sp-absent', `lo${'\0'.repeat(14)}`, 'a-name-that-no-interface-has']) {
      assert.equal(indexOfInterface(libc, socket, name), undefined);
      assert.equal(errorText(libc.errno()), 'no such device');
      assert.equal(macOfInterface(libc, socket, name), undefined);
      assert.equal(hasCarrier(libc, name), false);
    }
  });
});
