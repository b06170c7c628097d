import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { eachMessage, NETFILTER_BYTES, type NetlinkMessage } from '../netlink/message.ts';
import { addressBytes, keyIn, keyOf, protocolOf, protocols, widthOf } from './connection.ts';
import { attributes, messages } from './ctnetlink.ts';
import { entryIn } from './heard.ts';
import { REQUEST_BYTES, Requests } from './requests.ts';
import { connectionsConformance, sampleConnection } from './testing/connections-conformance.ts';
import { createFakeConnections } from './testing/fake-connections.ts';

connectionsConformance('fake', async () => {
  const connections = createFakeConnections();
  return {
    connections,
    talk: async (connection, eip) => connections.talk(connection, eip),
    end: async (key) => connections.end(key),
    part: async (key) => connections.part(key),
    read: async (key) => {
      const entry = connections.read(key);
      if (entry === undefined) return undefined;
      const eips = [ip('10.9.0.100'), ip('fd09::e:100')];
      return { mark: entry.mark, leavesAs: `${eips.find((eip) => addressBytes(eip) === entry.eip)} ${entry.eipPort}` };
    },
    [Symbol.asyncDispose]: async () => {},
  };
});

const messagesIn = (bytes: Buffer): NetlinkMessage[] => {
  const found: NetlinkMessage[] = [];
  eachMessage(bytes, (message) => found.push(message));
  return found;
};

test('a key says what a connection is called, and nothing else is taken for one', () => {
  const parts = { source: ip('fd44:1::2'), sourcePort: 4000, destination: ip('2001:db8::1'), destinationPort: 443 };
  const key = keyOf({ protocol: 'udp', ...parts });
  assert.deepEqual([key.length, widthOf(key), protocolOf(key)], [37, 16, protocols.udp]);
  assert.equal(keyIn(Buffer.from(key, 'latin1')), key);
  assert.equal(keyIn(Buffer.from(key, 'latin1').subarray(1)), undefined);
  assert.equal(keyIn(Buffer.alloc(13)), undefined, 'protocol 0');
});

test('a request to make a connection reads as that connection, of both families and protocols', () => {
  const wanted = ([4, 6] as const).flatMap((family) =>
    (['tcp', 'udp'] as const).map((protocol) => sampleConnection({ family, protocol, eipPort: 5000 })),
  );
  const requests = new Requests(REQUEST_BYTES * wanted.length);
  for (const connection of wanted) requests.create(7, connection, 120);
  const found = messagesIn(requests.bytes);
  assert.deepEqual(
    found.map(({ type, sequence }) => [type, sequence]),
    wanted.map(() => [messages.new, 7]),
  );
  for (const [index, message] of found.entries()) {
    const entry = entryIn(requests.bytes, message);
    assert.equal(entry?.connection.key, wanted[index]?.key);
    assert.equal(entry?.connection.mark, wanted[index]?.mark);
    // Replies are written as they are before translation.
    assert.equal(entry?.connection.eipPort, 4000);
    assert.ok(message.end - message.start < REQUEST_BYTES);
  }
});

test('cut or foreign bytes are no connection', () => {
  const requests = new Requests(REQUEST_BYTES);
  requests.create(1, sampleConnection(), 120);
  for (let length = 0; length < requests.bytes.length; length += 1) {
    const cut = Buffer.from(requests.bytes.subarray(0, length));
    assert.deepEqual(messagesIn(cut), []);
    if (length < NETFILTER_BYTES) continue;
    const message: NetlinkMessage = { type: messages.new, sequence: 1, start: 0, end: length };
    const entry = entryIn(cut, message);
    assert.ok(entry === undefined || length >= NETFILTER_BYTES + 2 * 52, 'both directions are needed');
  }
  const other = Buffer.from(requests.bytes);
  other.writeUInt16LE(attributes.zone, NETFILTER_BYTES + 2);
  assert.equal(entryIn(other, { type: messages.new, sequence: 1, start: 0, end: other.length }), undefined);
});
