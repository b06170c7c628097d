import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { createNeighbours } from './neighbours.ts';
import { createFakeSegment } from './testing/fake-segment.ts';

const [router, other] = [ip('10.6.0.1'), ip('10.6.0.2')];

test('says of an address that was asked for whether it has answered, and of all others that have spoken', () => {
  const segment = createFakeSegment({ eth0: '66:00:00:00:00:01' });
  const host = segment.host('66:00:00:00:00:99');
  host.addresses.add(router);
  const neighbours = createNeighbours(segment.open);
  assert.deepEqual([...neighbours.heard()], []);
  assert.deepEqual([...neighbours.ask('eth0', [router, other])], [router, other]);
  host.announce(ip('10.6.0.7'));
  assert.deepEqual([...neighbours.heard()], [router, ip('10.6.0.7')]);
  assert.deepEqual([...neighbours.heard()], [], 'once');
  neighbours.close();
  neighbours.close();
  assert.equal(segment.openSockets, 0);
});

test('a frame with the own MAC address is nobody else', () => {
  const segment = createFakeSegment({ eth0: '66:00:00:00:00:01' });
  const neighbours = createNeighbours(segment.open);
  neighbours.ask('eth0', [router]);
  segment.host('66:00:00:00:00:01').announce(router);
  assert.deepEqual([...neighbours.heard()], []);
});

test('names those only whom it could ask', () => {
  const segment = createFakeSegment({ eth0: '66:00:00:00:00:01' });
  const neighbours = createNeighbours(segment.open);
  assert.deepEqual([...neighbours.ask('missing0', [router])], []);
  assert.deepEqual([...neighbours.ask('eth0', [router])], [router]);
  segment.interfaces.delete('eth0');
  assert.deepEqual([...neighbours.ask('eth0', [router])], []);
  assert.equal(segment.openSockets, 0);
});
